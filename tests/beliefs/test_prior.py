"""Priors are read strictly; updating is counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollwise.beliefs import mean, parse_prior, update
from rollwise.types import RollwiseError


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, (1, 1)), ("1,1", (1, 1)), (" 0.5, 2 ", (0.5, 2)), ((3, 4), (3, 4)), ([1e-3, 9], (1e-3, 9))],
)
def test_a_prior_is_two_positive_numbers(given: Any, expected: tuple[float, float]) -> None:
    assert parse_prior(given) == expected


@pytest.mark.parametrize("given", ["", "1", "1,2,3", "a,b", "0,1", "1,-1", "nan,1", "inf,1", 3, (1,), ("x", 1)])
def test_anything_else_names_the_prior(given: Any) -> None:
    with pytest.raises(RollwiseError, match="^prior: .*such as 1,1"):
        parse_prior(given)


def test_outcomes_are_added_to_the_belief() -> None:
    a, b = update(np.array([1.0, 2.0]), np.array([1.0, 0.5]), np.array([3, 0]), np.array([1, 4]))
    assert a.tolist() == [4.0, 2.0]
    assert b.tolist() == [2.0, 4.5]
    assert mean(a, b) == pytest.approx([4 / 6, 2 / 6.5])
