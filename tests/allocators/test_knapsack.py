"""Knapsack RL: the published vector, the optimum by dynamic programming, rates of 0 and 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_adaroll import view_of

from rollwise.allocators.knapsack import Knapsack, knapsack_value, opening_rates
from rollwise.beliefs import CarriedPrior
from rollwise.types import RollwiseError

RNG = np.random.default_rng(0)


def decide(rates, budget, seen=40.0, **limits):
    """Counts for prompts whose last `seen` rollouts had these rates, under a flat prior."""
    p = np.asarray(rates, dtype=float)
    settings = {key: limits.pop(key) for key in ("low", "high") if key in limits}
    view = view_of([0] * len(p), [0] * len(p), budget, **limits)
    view.prior_a[:], view.prior_b[:] = 1 + seen * p, 1 + seen * (1 - p)
    return Knapsack(**settings).next_wave(view, RNG)


def best_value(rates, budget, low, high):
    """The published dynamic programme over prompts and budget."""
    best = {0: 0.0}
    for p in rates:
        worth = {n: knapsack_value([p], [n]) for n in range(low, high + 1)}
        after: dict[int, float] = {}
        for spent, value in best.items():
            for n, gain in worth.items():
                if spent + n <= budget:
                    after[spent + n] = max(after.get(spent + n, -1.0), value + gain)
        best = after
    return best[budget]


def test_published_vector():
    rates = [0.05, 0.125, 0.25, 0.5, 0.75, 0.95]
    counts = decide(rates, 48)
    assert counts.tolist() == [6, 15, 11, 7, 7, 2]
    assert knapsack_value(rates, counts) == pytest.approx(0.393317, abs=5e-7)


@settings(max_examples=25)
@given(
    rates=st.lists(st.sampled_from([0.05, 0.125, 0.3, 0.5, 0.8, 0.99]), min_size=1, max_size=4),
    budget=st.integers(8, 24),
    high=st.integers(6, 12),
)
def test_greedy_is_the_dynamic_programme(rates, budget, high):
    budget = min(budget, high * len(rates))
    counts = decide(rates, budget, high=high)
    assert counts.sum() == budget and (counts >= 2).all() and (counts <= high).all()
    assert knapsack_value(rates, counts) == pytest.approx(best_value(rates, budget, 2, high), abs=1e-12)


def test_the_solved_get_the_least_and_the_hopeless_what_is_left():
    counts = decide([1.0, 0.0, 0.5], 12, high=5)
    assert counts.tolist() == [2, 5, 5]
    assert decide([1.0, 1.0, 0.0, 0.0], 24).tolist() == [2, 2, 10, 10]


def test_more_than_high_only_where_nothing_else_is_left():
    assert decide([0.5, 0.5], 20, high=4).tolist() == [10, 10]


def test_without_carried_beliefs_it_is_uniform():
    assert Knapsack().next_wave(view_of([0] * 3, [0] * 3, 24, prior=(0.4, 1.1)), RNG).tolist() == [8, 8, 8]


def test_rates_are_the_last_pass_rates_where_beliefs_are_carried_without_memory():
    source = CarriedPrior(base=(1.0, 1.0), discount=0.0)
    source.observe(["a", "b", "c"], [1, 8, 0], [7, 0, 8])
    source.observe(["a", "b", "c"], [2, 7, 0], [6, 1, 8])
    beliefs = source.for_step(["a", "b", "c", "new"])
    view = view_of([0] * 4, [0] * 4, 32)
    view.prior_a[:], view.prior_b[:] = beliefs.T
    assert opening_rates(view) == pytest.approx([0.25, 0.875, 0.0, 0.5])


def test_shapes_must_agree():
    with pytest.raises(RollwiseError, match="give one each"):
        knapsack_value(np.array([0.5]), np.array([1, 2]))
