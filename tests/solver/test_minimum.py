"""Minima on large steps: the published shares of the rule, its improvement and the stand-in, and bounds above."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import optimum

from rollwise.solver import solve
from rollwise.solver.bounds import tail_bound, upper_bound
from rollwise.solver.minimum import rule_keys, stand_in
from rollwise.solver.ordered import solve_ordered
from rollwise.solver.policies import evaluate_rule
from rollwise.solver.prices import index_table
from rollwise.solver.prompts import PromptStates
from rollwise.types import RollwiseError
from rollwise.utilities import Utility, get_utility

MIN_VARIANCE = get_utility("min_variance")


# beyond.md 2: 99.3 % at (2,16), 95.7 % at (4,32), one improvement step lifts (4,32) to 97.3 %.
@pytest.mark.parametrize(
    ("prompts", "budget", "share", "improved"), [(2, 16, 0.993, None), (4, 32, 0.957, 0.973), (3, 24, None, None)]
)
def test_the_rule_and_its_improvement_keep_the_published_shares(prompts, budget, share, improved):
    best = solve(MIN_VARIANCE, prompts, budget, keep_values=False).value
    found = evaluate_rule(MIN_VARIANCE, prompts, budget, rule_keys(budget))
    if share is not None:
        assert found.value / best == pytest.approx(share, abs=6e-4)
    if improved is not None:
        assert found.improved / best == pytest.approx(improved, abs=6e-4)
    assert found.value <= found.improved <= best + 1e-12


@pytest.mark.parametrize(
    ("prompts", "budget", "prior"),
    [(2, 16, (1.0, 1.0)), (4, 32, (1.0, 1.0)), (3, 24, (0.5, 0.5)), (3, 18, (2.0, 0.7))],
)
def test_the_index_of_the_stand_in_keeps_97_percent(prompts, budget, prior):
    best = solve(MIN_VARIANCE, prompts, budget, prior, keep_values=False).value
    keys = index_table(stand_in(MIN_VARIANCE), prior, budget)
    assert 0.97 * best <= evaluate_rule(MIN_VARIANCE, prompts, budget, keys, prior).value <= best + 1e-12


def test_a_rule_is_worth_what_playing_it_is():
    """Uniform as a rule (fewest rollouts first), where the value is known; and the optimum's own first choices."""
    n = np.add.outer(np.arange(10), np.arange(10))
    for name in ("min_variance", "sum_variance", "sum_max_reward"):
        solved = solve(name, 3, 9, (0.5, 2.0))
        found = evaluate_rule(get_utility(name), 3, 9, -1.0 * n, (0.5, 2.0))
        assert found.value == pytest.approx(solved.uniform_value, abs=1e-12)
        assert found.value <= found.improved <= solved.value + 1e-12


def test_the_stand_in_orders_as_the_minimum_does_and_leaves_sums_alone():
    soft = stand_in(MIN_VARIANCE)
    assert soft.kind == "sum" and soft == stand_in(MIN_VARIANCE) and soft != stand_in(MIN_VARIANCE, 0.1)
    assert soft.value([1, 0], [1, 3]) < soft.value([2, 1], [1, 3]) < soft.value([1, 1], [1, 1])
    assert soft.digest(8) == stand_in(get_utility("min_variance")).digest(8)
    total = get_utility("sum_variance")
    assert stand_in(total) == total


@settings(max_examples=40)
@given(st.data())
def test_the_bound_on_a_minimum_is_never_below_the_optimum(data):
    size, budget = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    priors = [
        (data.draw(st.sampled_from([0.3, 1.0, 4.0])), data.draw(st.sampled_from([0.3, 1.0, 4.0]))) for _ in range(size)
    ]
    grid = st.sampled_from([-0.5, 0.0, 0.25, 1.0]) | st.floats(-1, 1)
    values = data.draw(st.lists(grid, min_size=(budget + 1) ** 2, max_size=(budget + 1) ** 2))
    table = np.reshape(values, (budget + 1, budget + 1))
    best = optimum(lambda s, f: table[s, f], "min", priors, budget)
    prompts = PromptStates.of(*np.transpose(priors), budget)
    utility = Utility.from_table(table, "min")
    assert tail_bound(utility, prompts, budget) >= best - 1e-9
    assert upper_bound(utility, prompts, budget).value >= best - 1e-9
    assert (
        upper_bound(utility, prompts, budget, waves=2).value >= solve_ordered(utility, prompts, budget).uniform - 1e-9
    )


@pytest.mark.parametrize("name", ["min_variance", "min_squared_advantage", "min_max_reward"])
def test_the_bound_follows_minima_down_as_steps_grow(name):
    """Above the optimum at B = 4, and far below the average term at B = 64, where the minimum is nearly always 0."""
    utility = get_utility(name)
    small = upper_bound(utility, PromptStates.of(np.ones(4), 1.0, 32), 32).value
    assert solve(name, 4, 32, keep_values=False).value <= small
    large = upper_bound(utility, PromptStates.of(np.ones(64), 1.0, 64), 512).value
    assert large < 0.5 * small


def test_a_sum_is_bounded_by_its_price():
    prompts = PromptStates.of(np.ones(4), 1.0, 32)
    assert upper_bound(get_utility("sum_variance"), prompts, 32).value / 4 == pytest.approx(0.17868, abs=6e-6)


def test_rules_for_problems_too_large_are_refused():
    with pytest.raises(RollwiseError, match="memory_limit"):
        evaluate_rule(MIN_VARIANCE, 12, 96, rule_keys(96))
