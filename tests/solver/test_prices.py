"""The price decomposition: a certificate above every policy, and an index next to the optimum below it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import optimum, play

from rollwise.solver.ordered import solve_ordered
from rollwise.solver.policies import evaluate_rule
from rollwise.solver.prices import index_table, indices, price_bound
from rollwise.solver.prompts import PromptStates
from rollwise.types import RollwiseError
from rollwise.utilities import Utility, get_utility

PRIOR = st.sampled_from([0.001, 0.3, 0.5, 1.0, 2.0, 7.5, 1e6])


@st.composite
def problems(draw, most=5):
    """(utility, priors, caps, budget): any table h, any prior and cap per prompt, up to three prompts."""
    size = draw(st.integers(1, 3))
    budget = draw(st.integers(1, most))
    priors = [(draw(PRIOR), draw(PRIOR)) for _ in range(size)]
    caps = [draw(st.integers(-(-budget // size), budget)) for _ in range(size)]
    values = draw(st.lists(st.floats(-1, 1), min_size=(budget + 1) ** 2, max_size=(budget + 1) ** 2))
    return Utility.from_table(np.reshape(values, (budget + 1, budget + 1)), "sum"), priors, caps, budget


def term(utility):
    table = utility.table(utility.n_limit)
    return lambda s, f: table[s, f]


def states(priors, caps):
    a, b = np.transpose(priors)
    return PromptStates.of(a, b, caps)


# beyond.md 2, per prompt under Beta(1,1), 8 rollouts each on average.
@pytest.mark.parametrize(
    ("name", "cap", "bound"),
    [
        ("sum_variance", 32, 0.17868),
        ("sum_variance", 64, 0.17868),
        ("sum_max_reward", 32, 0.96970),
        ("sum_max_reward", 64, 64 / 65),
        ("sum_max_reward", 2048, 0.99940),  # the cap binds nobody
    ],
)
@pytest.mark.parametrize("size", [4, 64])
def test_published_bounds(name, cap, bound, size):
    found = price_bound(get_utility(name), PromptStates.of(np.ones(size), 1.0, cap), 8 * size)
    assert found.value / size == pytest.approx(bound, abs=6e-6)
    assert found.cap == cap and found.floor <= found.value <= found.floor + 1e-6 * size


# beyond.md 2: evaluated exactly; shares of the optimum 0.9997, 1.0000, 0.9938.
@pytest.mark.parametrize(
    ("name", "prompts", "budget", "value"),
    [
        ("sum_variance", 2, 4, 0.0741),
        ("sum_variance", 4, 32, 0.17425),
        ("sum_max_reward", 3, 24, None),
        ("sum_squared_advantage", 4, 32, 0.9938 * 1.49011),
    ],
)
def test_the_index_policy_is_worth_the_published_value(name, prompts, budget, value):
    utility = get_utility(name)
    found = evaluate_rule(utility, prompts, budget, index_table(utility, (1.0, 1.0), budget)).value
    if value is None:
        found, value = found / solve_ordered(utility, PromptStates.of(np.ones(3), 1.0, 24), 24).value, 1.0
        assert found == pytest.approx(value, abs=5e-5)
    else:
        assert found / prompts == pytest.approx(value, abs=1e-4)


@settings(max_examples=60)
@given(problems())
def test_the_bound_is_never_below_the_optimum_and_certain_to_a_millionth(problem):
    utility, priors, caps, budget = problem
    bound = price_bound(utility, states(priors, caps), budget)
    assert bound.value >= optimum(term(utility), "sum", priors, budget, caps) - 1e-9
    assert bound.value - bound.floor <= 1e-6


@settings(max_examples=30)
@given(problems())
def test_a_budget_that_may_be_saved_is_worth_no_less(problem):
    utility, priors, caps, budget = problem
    spent = price_bound(utility, states(priors, caps), budget)
    saved = price_bound(utility, states(priors, caps), budget, at_most=True)
    assert saved.value >= spent.value - 1e-9 and saved.price >= 0
    shorter = range(1, budget + 1)
    best = max(optimum(term(utility), "sum", priors, n, caps) for n in shorter)
    assert saved.value >= best - 1e-9


@settings(max_examples=30)
@given(problems())
def test_the_index_policy_never_beats_the_bound(problem):
    utility, priors, caps, budget = problem

    def decide(s, f, left, _):
        room = np.minimum(np.array(caps) - s - f, left)
        a, b = np.transpose(priors)
        index = indices(utility, PromptStates.of(a, b, np.maximum(room, 0), successes=s, failures=f))
        return np.eye(len(s), dtype=int)[np.argmax(index)]

    worth = play(lambda s, f, *rest: decide(np.array(s), np.array(f), *rest), term(utility), "sum", priors, budget, 99)
    assert worth <= price_bound(utility, states(priors, caps), budget).value + 1e-9


@settings(max_examples=40)
@given(problems(), st.integers(0, 2), st.integers(0, 1))
def test_the_index_is_where_rolling_once_more_stops_to_pay(problem, i, s):
    utility, priors, caps, _ = problem
    i = min(i, len(priors) - 1)
    (a, b), cap = priors[i], caps[i]
    s = min(s, cap - 1)
    index = indices(utility, PromptStates.of(a, b, cap - s, successes=s))[0]
    h = term(utility)

    def worth(lam, x, y):
        go = roll(lam, x, y) if x + y < cap else -np.inf
        return max(h(x, y), go)

    def roll(lam, x, y):
        mu = (a + x) / (a + b + x + y)
        return -lam + mu * worth(lam, x + 1, y) + (1 - mu) * worth(lam, x, y + 1)

    assert roll(index, s, 0) == pytest.approx(h(s, 0), abs=1e-9)
    assert roll(index + 1e-3, s, 0) < h(s, 0)


def test_outcomes_cost_what_they_cost():
    """Charging twice as much halves index and price; a dear success counts by its chance."""
    utility = get_utility("sum_variance")
    plain = PromptStates.of([1.0, 2.0], 1.0, 16)
    dear = PromptStates.of([1.0, 2.0], 1.0, 16, cost_success=2.0, cost_failure=2.0)
    np.testing.assert_allclose(indices(utility, dear), indices(utility, plain) / 2, rtol=1e-12)
    assert price_bound(utility, dear, 20.0).value == pytest.approx(price_bound(utility, plain, 10).value)
    one = PromptStates.of(3.0, 1.0, 1, successes=1, cost_success=5.0, cost_failure=1.0)
    gain = 0.2 * 0.25  # (1 success) -> mixed with chance 1/5, at an expected cost of 0.8 * 5 + 0.2
    assert indices(utility, one)[0] == pytest.approx(gain / 4.2, rel=1e-12)


def test_the_table_of_indices_is_symmetric_where_utility_and_prior_are():
    table = index_table(get_utility("sum_variance"), (1.0, 1.0), 12)
    inside = np.isfinite(table)
    assert inside.sum() == 12 * 13 // 2
    np.testing.assert_allclose(table[inside], table.T[inside], atol=1e-13)
    assert table[0, 1] > table[0, 2] > table[0, 3] > 0 > table[1, 1]


def test_extreme_beliefs_stay_finite():
    a = np.array([1e-3, 1e6, 1e-3, 1e6])
    b = np.array([1e-3, 1e-3, 1e6, 1e6])
    prompts = PromptStates.of(a, b, 64)
    for name in ("sum_variance", "sum_max_reward", "sum_squared_advantage"):
        assert np.isfinite(indices(get_utility(name), prompts)).all()
        assert np.isfinite(price_bound(get_utility(name), prompts, 32).value)


def test_equal_prompts_in_another_order_have_the_same_bound_and_indices():
    utility, rng = get_utility("sum_variance"), np.random.default_rng(0)
    a, b = rng.uniform(0.3, 3, 20), rng.uniform(0.3, 3, 20)
    order = rng.permutation(20)
    here, there = PromptStates.of(a, b, 24), PromptStates.of(a[order], b[order], 24)
    np.testing.assert_array_equal(indices(utility, here)[order], indices(utility, there))
    assert price_bound(utility, here, 160).value == pytest.approx(price_bound(utility, there, 160).value, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: price_bound(get_utility("min_variance"), p, 4), "stand-in"),
        (lambda p: price_bound(get_utility("sum_variance"), p, 99), "at least 50"),
        (lambda p: price_bound(get_utility("sum_variance"), p, -1), "negative"),
    ],
)
def test_mistakes_are_one_line_that_names_the_setting(call, words):
    with pytest.raises(RollwiseError, match=words) as caught:
        call(PromptStates.of([1.0, 1.0], 1.0, 4))
    assert "\n" not in str(caught.value)
