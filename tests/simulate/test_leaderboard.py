"""Comparisons: errors, paired differences, shares of optimum and bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rollwise.simulate.leaderboard import (
    bootstrap,
    by_setting,
    difference,
    estimate,
    flatten,
    utilities_table,
    write_parquet,
)
from rollwise.simulate.methods import parse_methods
from rollwise.simulate.runner import Setting, run
from rollwise.types import RollwiseError


def row(seed, mean, deviation=0.0, population=0, steps=4, method="x"):
    return {
        "method": method,
        "seed": seed,
        "steps": steps,
        "means": {"m": mean},
        "deviations": {"m": deviation},
        "setting": {"population": population, "replay": False},
    }


def test_new_prompts_make_steps_independent():
    found = estimate([row(0, 1.0, 2.0), row(1, 3.0, 2.0)], "m")
    assert found.mean == 2.0
    # two means of four steps with deviation two
    assert found.error == pytest.approx(math.sqrt(2 * 4 / 4) / 2)


def test_prompts_met_again_are_judged_over_seeds():
    assert estimate([row(0, 1.0, 9.0, 5), row(1, 3.0, 9.0, 5)], "m").error == pytest.approx(1.0)
    assert math.isnan(estimate([row(0, 1.0, 9.0, 5)], "m").error)


def test_a_paired_difference_ignores_what_both_share():
    base = [row(seed, 10.0 * seed) for seed in range(12)]
    found = difference([row(seed, 10.0 * seed + 1 + 0.1 * (-1) ** seed) for seed in range(12)], base, "m")
    assert found.mean == pytest.approx(1.0)
    assert 0.9 < found.low < 1.0 < found.high < 1.1
    assert found.seeds == 12
    assert found.seeds_needed == 2


def test_seeds_needed_is_the_textbook_number():
    # deviation 1 (ddof 1), mean 0.5: (1.96 + 0.84)^2 * 4 = 31.4
    values = np.array([-1.0, 1.0]) * math.sqrt(0.5) + 0.5
    found = difference([row(k, value) for k, value in enumerate(values)], [row(0, 0.0), row(1, 0.0)], "m")
    assert found.seeds_needed == 32


def test_the_bootstrap_interval_covers_as_the_normal_one():
    values = np.random.default_rng(1).normal(0, 1, 400)
    low, high = bootstrap(values)
    half = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.02)
    assert math.isnan(bootstrap(np.array([1.0]))[0])


def test_seeds_that_do_not_meet_are_refused():
    with pytest.raises(RollwiseError, match="seed"):
        difference([row(1, 1.0)], [row(0, 0.0)], "m")
    with pytest.raises(RollwiseError, match="measured: m"):
        estimate([row(0, 1.0)], "n")


@pytest.fixture(scope="module")
def rows():
    setting = Setting(prompts=2, budget=16, steps=60, n_min=0)
    return run(setting, parse_methods("uniform,min_variance@sequential=true"), [0], workers=1, ledgers=False)


def test_shares_are_of_the_optimum_where_it_is_known(rows):
    (methods,) = by_setting(rows).values()
    found = utilities_table(methods)
    entry = found["min_variance"]
    assert entry["optimum"] == pytest.approx(0.116657, abs=1e-6)
    assert entry["optimum"] <= entry["bound"]
    best = entry["methods"]["min_variance@sequential=true"]
    assert best["share"] == pytest.approx(best["mean"] / entry["optimum"])
    assert entry["methods"]["uniform"]["share"] < best["share"]


def test_no_bound_is_claimed_where_verdicts_lie():
    from rollwise.simulate.imperfections import Imperfections

    setting = Setting(prompts=2, budget=16, steps=3, imperfections=Imperfections(false_positive=0.1))
    (methods,) = by_setting(run(setting, parse_methods("uniform"), [0], workers=1, ledgers=False)).values()
    assert {entry["bound"] for entry in utilities_table(methods).values()} == {None}


def test_parquet_holds_one_line_an_arm(rows, tmp_path):
    pandas = pytest.importorskip("pandas", reason="needs rollwise[report]")
    frame = pandas.read_parquet(write_parquet(rows, tmp_path / "results.parquet"))
    assert len(frame) == len(flatten(rows)) == 2
    assert frame["dead_prompt_share"].between(0, 1).all()
    assert frame["setting.pool"].tolist() == ['"beta:1,1"'] * 2
