"""The numbers behind the figures, and the SVG they end as."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from rollwise.report import figures
from rollwise.report.run_data import read_run


def test_all_wrong_and_all_right_are_bins_of_their_own() -> None:
    n = np.array([4, 6, 2, 8, 10, 5])
    successes = np.array([0, 0, 2, 4, 1, 5])
    at, mean, low, high = figures.by_success_rate(n, n, successes)
    assert at.tolist() == pytest.approx([0.0, 0.15, 0.55, 1.0])
    assert mean.tolist() == [5.0, 10.0, 8.0, 3.5]
    assert (low <= mean).all() and (mean <= high).all()


def test_prompts_without_an_outcome_have_no_success_rate() -> None:
    at, mean, _, _ = figures.by_success_rate(np.array([4, 9]), np.array([4, 0]), np.array([4, 0]))
    assert at.tolist() == [1.0] and mean.tolist() == [4.0]


def test_the_running_mean_of_a_constant_is_that_constant_up_to_the_ends() -> None:
    assert figures.running_mean(np.full(30, 0.25)).tolist() == pytest.approx([0.25] * 30)
    assert figures.running_mean(np.array([0.0, 3.0, 0.0])).tolist() == pytest.approx([1.5, 1.0, 1.5])


def test_shares_of_sizes_sum_to_one() -> None:
    sizes, shares = figures.size_shares(np.array([2, 2, 8, 2]))
    assert sizes.tolist() == [2, 8] and shares.tolist() == [0.75, 0.25]


@pytest.mark.parametrize("name", ["reward", "signal", "allocation"])
def test_each_figure_is_valid_svg_in_the_text_colour_of_the_page(finished_run: Path, name: str) -> None:
    arms = read_run(finished_run).arms
    drawn = figures.allocation_figure(arms, 8) if name == "allocation" else getattr(figures, f"{name}_figure")(arms)
    root = ElementTree.fromstring(drawn)
    assert root.tag.endswith("svg")
    assert "currentColor" in drawn and figures.TEXT not in drawn
    again = figures.allocation_figure(arms, 8) if name == "allocation" else getattr(figures, f"{name}_figure")(arms)
    assert again == drawn


def test_uniform_is_grey_and_every_adaptive_arm_has_its_own_colour(finished_run: Path) -> None:
    chosen = figures.colours(read_run(finished_run).arms)
    assert chosen["uniform"] == figures.UNIFORM
    assert chosen["adaroll"] in figures.PALETTE
