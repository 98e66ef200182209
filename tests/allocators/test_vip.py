"""VIP: the published solutions, the variance formulas by Monte Carlo, integers near the optimum."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from test_adaroll import view_of

from rollwise.advantages import get_advantage
from rollwise.allocators.vip import Vip, continuous_counts, minimise_variance, root_dr_grpo, variance

RNG = np.random.default_rng(0)
RATES = np.array([0.05, 0.125, 0.25, 0.5, 0.75, 0.95])


def decide(rates, budget, **limits):
    p = np.asarray(rates, dtype=float)
    settings = {key: limits.pop(key) for key in ("low", "high", "form") if key in limits}
    view = view_of([0] * len(p), [0] * len(p), budget, **limits)
    view.prior_a[:], view.prior_b[:] = 10 * p, 10 * (1 - p)
    return Vip(**settings).next_wave(view, RNG)


@pytest.mark.parametrize(
    ("form", "low", "counts"),
    [
        ("rloo", 2, [5.292, 7.513, 9.528, 10.847, 9.528, 5.292]),
        ("dr_grpo", 3, [4.095, 7.426, 10.198, 11.988, 10.198, 4.095]),
    ],
)
def test_published_solutions(form, low, counts):
    found = continuous_counts(RATES * (1 - RATES), 48, np.full(6, low), np.full(6, 32), form)
    assert found == pytest.approx(counts, abs=5e-4)
    whole = decide(RATES, 48, form=form)
    assert whole.sum() == 48 and np.abs(whole - counts).max() < 1


def test_the_root_solves_its_equation():
    ratio = np.array([26.0, 27.0, 30.0, 400.0])
    root = root_dr_grpo(ratio)
    assert root[0] == 0 and root[1] == pytest.approx(3)
    assert root[1:] ** 3 / (root[1:] - 2) == pytest.approx(ratio[1:])


@pytest.mark.parametrize("form", ["rloo", "dr_grpo"])
def test_no_whole_allocation_has_much_less_variance(form):
    low, spread, total = {"rloo": 2, "dr_grpo": 3}[form], np.array([0.05, 0.16, 0.25]), 21

    def objective(counts):
        return sum(a * variance(n, form) for a, n in zip(spread, counts, strict=True))

    best = min(objective(n) for n in product(range(low, total), repeat=3) if sum(n) == total)
    found = minimise_variance(spread, total, np.full(3, low), np.full(3, 32), form)
    assert found.sum() == total
    assert objective(found) <= best * (1 + 1e-9)


@pytest.mark.parametrize("form", ["rloo", "dr_grpo"])
@pytest.mark.parametrize("n", [2, 3, 8])
def test_variance_formulas_by_monte_carlo(form, n):
    """systems.md 10.1: Var of (1/n) sum A Z with Z independent of the reward, mean 0, in units of sigma_Z^2 p(1-p).

    The published unit is 4 sigma_Z^2 p(1-p), for rewards of -1 and 1; rewards of 0 and 1 take the 4 away.
    """
    rng, draws, p = np.random.default_rng(n), 60_000, 0.3
    rewards = (rng.random((draws, n)) < p).astype(float)
    groups = np.repeat(np.arange(draws), n).tolist()
    centred = get_advantage("dr_grpo")(rewards.ravel(), groups, np.ones((draws * n, 2)), np.arange(draws * n))
    advantages = centred.reshape(draws, n) * (n / (n - 1) if form == "rloo" else 1)
    estimate = (advantages * rng.standard_normal((draws, n))).mean(axis=1)
    assert estimate.var() == pytest.approx(p * (1 - p) * variance(n, form), rel=0.03)


def test_bounds_are_kept_and_given_up_only_where_the_budget_leaves_no_choice():
    assert decide([0.5, 0.01, 0.01], 60).max() <= 32
    assert decide([0.5, 0.5], 80).tolist() == [40, 40]
    assert decide([0.5, 0.01, 0.2], 4, n_min=1).min() >= 1


def test_one_prior_for_all_is_uniform():
    assert decide([0.3, 0.3, 0.3], 24).tolist() == [8, 8, 8]


def test_rates_of_zero_and_one_keep_the_least():
    view = view_of([0] * 3, [0] * 3, 24)
    view.prior_a[:], view.prior_b[:] = [5, 1e-300, 5], [5, 5, 1e-300]
    assert Vip().next_wave(view, RNG).tolist() == [20, 2, 2]
