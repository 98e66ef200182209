"""The fitted prior maximises the beta-binomial likelihood, and stays sane where counts say nothing."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollwise.beliefs import fit_discount, fit_prior, log_rising, predictive_score
from rollwise.beliefs.fit import BOUNDS
from rollwise.types import RollwiseError

groups = st.lists(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=30
)


def log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def likelihood(a: float, b: float, counts: Any, shrink: float = 1.0) -> float:
    """Beta-binomial log-likelihood through gamma functions, less the pull towards Beta(1,1)."""
    fit = sum(log_beta(a + s, b + n - s) - log_beta(a, b) for s, n in counts)
    return fit - shrink * (math.log(a) ** 2 + math.log(b) ** 2) / 8


@given(counts=groups)
@settings(max_examples=40)
def test_no_point_of_a_grid_fits_better(counts: list[tuple[int, int]]) -> None:
    s, n = zip(*counts, strict=True)
    a, b = fit_prior(s, n)
    best = likelihood(a, b, counts)
    grid = np.geomspace(*BOUNDS, 41)
    assert best >= max(likelihood(x, y, counts) for x in grid for y in grid) - 1e-6
    for factor in (0.99, 1.01):
        inside = [x * factor for x in (a, b)]
        if all(BOUNDS[0] <= x <= BOUNDS[1] for x in inside):
            assert best >= likelihood(inside[0], b, counts) - 1e-9
            assert best >= likelihood(a, inside[1], counts) - 1e-9


@pytest.mark.parametrize("true", [(1, 1), (0.3, 1.5), (5, 2), (0.05, 3)])
def test_a_large_population_is_recovered(true: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    s = rng.binomial(8, rng.beta(*true, size=20_000))
    found = fit_prior(s, np.full(len(s), 8))
    assert found == pytest.approx(true, rel=0.06)
    assert found == pytest.approx(fit_prior(s, np.full(len(s), 8), shrink=0), rel=0.01)


@given(counts=groups)
@settings(max_examples=20)
def test_success_and_failure_may_be_swapped_and_groups_reordered(counts: list[tuple[int, int]]) -> None:
    s, n = (np.array(column) for column in zip(*counts, strict=True))
    a, b = fit_prior(s, n)
    assert fit_prior(n - s, n) == pytest.approx((b, a), rel=1e-4)
    assert fit_prior(s[::-1], n[::-1]) == (a, b)


@pytest.mark.parametrize("size", [1, 2, 30, 2000])
def test_all_wrong_and_all_right_stay_in_bounds_and_lean_the_right_way(size: int) -> None:
    a, b = fit_prior([0] * size, [8] * size)
    assert BOUNDS[0] <= a < 1 < b <= BOUNDS[1]
    assert fit_prior([8] * size, [8] * size) == pytest.approx((b, a), rel=1e-6)


def test_without_counts_the_prior_is_flat() -> None:
    assert fit_prior([], []) == pytest.approx((1, 1))
    assert fit_prior([0, 0], [0, 0]) == pytest.approx((1, 1))


def test_no_spread_at_all_and_nothing_but_spread_stay_in_bounds() -> None:
    same = fit_prior([4] * 1000, [8] * 1000)
    assert same[0] == pytest.approx(same[1]) and 50 < same[0] <= BOUNDS[1]
    assert fit_prior([0, 8] * 500, [8] * 1000) == pytest.approx((BOUNDS[0], BOUNDS[0]))


def test_groups_of_many_rollouts_are_fitted_too() -> None:
    rng = np.random.default_rng(1)
    s = rng.binomial(100_000, rng.beta(0.5, 4, size=300))
    assert fit_prior(s, np.full(300, 100_000)) == pytest.approx((0.5, 4), rel=0.2)


@pytest.mark.parametrize(("s", "n"), [([3], [2]), ([-1], [2]), ([0.5], [2]), ([1, 2], [3])])
def test_what_are_no_counts_is_refused(s: Any, n: Any) -> None:
    with pytest.raises(RollwiseError, match="^counts: "):
        fit_prior(s, n)


@pytest.mark.parametrize("x", [1e-3, 1.0, 7.5, 1e6])
@pytest.mark.parametrize("k", [0, 1, 8, 64, 65, 500])
def test_log_rising_is_the_log_of_the_product(x: float, k: int) -> None:
    assert log_rising(x, k).item() == pytest.approx(math.fsum(math.log(x + j) for j in range(k)), rel=1e-9, abs=1e-12)


def test_predictive_score_by_hand() -> None:
    # one prompt: 2 of 2, then 1 of 2 under Beta(1 + 2, 1): 2 B(4,2)/B(3,1) = 2 * (1/20) * 3 = 0.3
    assert predictive_score([[2, 1]], [[2, 2]], 1.0) == pytest.approx(math.log(0.3))
    # everything forgotten after the second visit: the third, 0 of 1, is judged under Beta(1 + 1, 1 + 1)
    expected = (math.log(0.3) + math.log(0.5)) / 2
    assert predictive_score([[2, 1, 0]], [[2, 2, 1]], 0.0) == pytest.approx(expected)
    # a visit without trials neither counts nor fades the evidence
    assert predictive_score([[2, 0, 1]], [[2, 0, 2]], 0.5) == pytest.approx(math.log(0.3))


def walk(drift: float, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """300 prompts x 15 visits of 8 rollouts, log-odds moving by a normal step of that size at each visit."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 1.5, size=(300, 1)) + np.cumsum(rng.normal(0, drift, size=(300, 15)), axis=1)
    s = rng.binomial(8, 1 / (1 + np.exp(-odds)))
    return [(row, np.full(15, 8)) for row in s]


def test_prompts_that_move_want_more_forgetting() -> None:
    still, slow, fast = (fit_discount(walk(drift, 2)) for drift in (0.0, 0.3, 1.5))
    assert 1.0 >= still > 0.97 and still > slow > fast > 0.05


def test_the_discount_beats_every_point_of_a_grid() -> None:
    log = walk(0.5, 3)
    s, n = np.array([row[0] for row in log]), np.array([row[1] for row in log])
    rho = fit_discount(log, prior=(1, 1))
    assert predictive_score(s, n, rho) >= max(predictive_score(s, n, x) for x in np.linspace(0, 1, 41)) - 1e-6


def test_without_a_second_visit_nothing_is_forgotten() -> None:
    assert fit_discount([([3], [8]), ([0, 0], [8, 0])]) == 1.0
    assert fit_discount([]) == 1.0


def test_on_a_real_training_log_discounting_predicts_better(training_log: Path) -> None:
    with gzip.open(training_log, "rt") as lines:
        rows = [json.loads(line) for line in lines][::3]
    log = [(row["correct"], [row["n_per_visit"]] * len(row["correct"])) for row in rows]
    prior = fit_prior([s[0] for s, _ in log], [n[0] for _, n in log])
    assert prior[0] < 0.6 < prior[1] < 1.0  # many hopeless prompts: nothing like Beta(1,1)
    rho = fit_discount(log, prior)
    assert 0.8 < rho < 0.92
    longest = max(len(s) for s, _ in log)
    s, n = (np.array([[*row[k], *[0] * (longest - len(row[k]))] for row in log]) for k in (0, 1))
    score = {x: predictive_score(s, n, x, prior) for x in (0.0, rho, 1.0)}
    assert score[rho] > score[1.0] + 0.03 and score[rho] > score[0.0] + 0.1
