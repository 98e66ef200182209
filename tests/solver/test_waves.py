"""The wave recursion: the published shares, the certificate, pending rollouts by joint k."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import optimum_in_waves, outcome_chance

from rollwise.solver.prices import indices, price_bound
from rollwise.solver.prompts import PromptStates, PromptTables, terms_by_total
from rollwise.solver.waves import value_waves, wave_bound
from rollwise.utilities import Utility, get_utility

PRIOR = st.sampled_from([0.001, 0.3, 1.0, 2.5, 1e6])


# beyond.md 3: share of the sequential gain over uniform that R waves keep, between the relaxed bounds.
@pytest.mark.parametrize(
    ("name", "cap", "shares"),
    [
        ("sum_variance", 64, {1: 0.0, 2: 0.664, 3: 0.867, 4: 0.952, 6: 0.988, 8: 0.996}),
        ("sum_max_reward", 32, {1: 0.0, 2: 0.88, 3: 1.0}),
        ("sum_max_reward", 64, {1: 0.0, 2: 0.74, 3: 0.95, 4: 1.0}),
    ],
)
def test_published_shares_of_the_sequential_gain(name, cap, shares):
    utility, prompts = get_utility(name), PromptStates.of(1.0, 1.0, cap)
    uniform = {"sum_variance": 7 / 48, "sum_max_reward": 8 / 9}[name]
    sequential = price_bound(utility, prompts, 8).value
    found = {waves: wave_bound(utility, prompts, 8, waves).value for waves in shares}
    kept = {waves: (value - uniform) / (sequential - uniform) for waves, value in found.items()}
    digits = 0.0006 if name == "sum_variance" else 0.006
    assert kept == pytest.approx(shares, abs=digits)


@settings(max_examples=25)
@given(st.data())
def test_the_bound_is_never_below_the_best_play_in_waves(data):
    budget, waves = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    priors = [(data.draw(PRIOR), data.draw(PRIOR)) for _ in range(2)]
    values = data.draw(st.lists(st.floats(-1, 1), min_size=(budget + 1) ** 2, max_size=(budget + 1) ** 2))
    table = np.reshape(values, (budget + 1, budget + 1))
    best = optimum_in_waves(lambda s, f: table[s, f], "sum", priors, budget, waves)
    prompts = PromptStates.of(*np.transpose(priors), budget)
    bound = wave_bound(Utility.from_table(table, "sum"), prompts, budget, waves)
    assert bound.value >= best - 1e-9
    assert bound.value <= price_bound(Utility.from_table(table, "sum"), prompts, budget).value + 1e-7


@pytest.mark.parametrize("name", ["sum_variance", "sum_max_reward", "sum_squared_advantage"])
def test_as_many_waves_as_rollouts_are_the_sequential_recursion(name):
    utility, prompts = get_utility(name), PromptStates.of([0.5, 1.0], [2.0, 1.0], 8)
    assert wave_bound(utility, prompts, 8, 8).value == pytest.approx(price_bound(utility, prompts, 8).value, abs=1e-9)


def by_hand(h, a, b, s, f, pending, room, sizes, waves, lam, dear, cheap):
    """[K] worth and spend of each size, by sums over beta-binomials."""

    @cache
    def worth(x, y, room, waves):
        best = (h(x, y), 0.0)
        if waves:
            for k in sizes:
                if 0 < k <= room:
                    value, spend = go(x, y, k, k, room, waves)
                    if value > best[0] + 1e-12:
                        best = value, spend
        return best

    def go(x, y, k, more, room, waves):
        cost = k * (cheap + (a + x) / (a + b + x + y) * (dear - cheap))
        value, spend = -lam * cost, cost
        for j in range(more + 1):
            chance = outcome_chance(j, more, a + x, b + y)
            inner = worth(x + j, y + more - j, room - k, waves - 1)
            value, spend = value + chance * inner[0], spend + chance * inner[1]
        return value, spend

    return np.transpose([go(s, f, k, pending + k, room, waves) for k in sizes if k <= room])


@settings(max_examples=30)
@given(st.data())
def test_every_size_is_worth_what_the_recursion_says(data):
    """Sweeps against plain sums: pending rollouts, costs by outcome, odd sizes, several prompts side by side."""
    utility = get_utility(data.draw(st.sampled_from(["sum_variance", "sum_max_reward", "sum_squared_advantage"])))
    count, waves = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    lam = data.draw(st.sampled_from([-0.02, 0.001, 0.03, 0.2]))
    whole = st.lists(st.integers(0, 3), min_size=count, max_size=count)
    s, f, pending, room = (np.array(data.draw(whole)) for _ in range(4))
    a, b = (np.array([data.draw(PRIOR) for _ in range(count)]) for _ in range(2))
    dear, cheap = data.draw(st.sampled_from([(1.0, 1.0), (2.0, 0.5)]))
    prompts = PromptStates.of(
        a, b, room, successes=s, failures=f, pending=pending, cost_success=dear, cost_failure=cheap
    )
    # All sizes, so that what is left of the room is again a size.
    sizes = np.arange(4)
    found = value_waves(prompts, terms_by_total(utility, prompts.top), sizes, waves, lam)

    def h(x, y):
        return float(utility.term(np.array(x), np.array(y)))

    for i in range(count):
        state = (a[i], b[i], s[i], f[i], pending[i], room[i])
        worth, _ = by_hand(h, *state, range(4), waves, lam, dear, cheap)
        np.testing.assert_allclose(found.worth[i, : len(worth)], worth, atol=1e-10)
        assert (found.worth[i, len(worth) :] < -1e20).all()


def test_expected_spend_is_what_the_play_spends():
    """At lam > 0 and without ties, spend is minus the slope of the worth in lam."""
    utility, prompts = get_utility("sum_variance"), PromptStates.of([1.0, 0.7], [1.3, 2.0], 24)
    terms, sizes = terms_by_total(utility, 24), np.array([0, 1, 2, 3, 5, 8, 13, 24])
    here, near = (value_waves(prompts, terms, sizes, 3, lam) for lam in (0.004, 0.004 + 1e-7))
    np.testing.assert_allclose((here.worth - near.worth) / 1e-7, here.spend, rtol=1e-5)


def test_prompts_do_not_feel_who_is_computed_beside_them():
    utility, rng = get_utility("sum_variance"), np.random.default_rng(1)
    a, b, room = rng.uniform(0.3, 3, 300), rng.uniform(0.3, 3, 300), rng.integers(1, 25, 300)
    prompts = PromptStates.of(a, b, room)
    terms, sizes = terms_by_total(utility, 24), np.array([0, 1, 2, 3, 4, 6, 8, 12, 16, 24])
    whole = value_waves(prompts, terms, sizes, 3, 0.003).worth
    for places in (np.arange(300)[::-1], np.arange(0, 300, 7)):
        np.testing.assert_array_equal(value_waves(prompts.take(places), terms, sizes, 3, 0.003).worth, whole[places])


def test_prompts_may_have_terms_of_their_own():
    utilities = [get_utility("sum_variance"), get_utility("sum_max_reward")]
    tables = PromptTables("both", lambda n, kinds: np.stack([utilities[k].table(n) for k in kinds]), 2)
    both = PromptStates.of(1.0, 1.0, 12, table=[0, 1])
    sizes, one = np.arange(13), PromptStates.of(1.0, 1.0, 12)
    found = value_waves(both, terms_by_total(tables, 12), sizes, 3, 0.01).worth
    for row, utility in enumerate(utilities):
        alone = value_waves(one, terms_by_total(utility, 12), sizes, 3, 0.01).worth[0]
        np.testing.assert_array_equal(found[row], alone)
        assert indices(tables, both)[row] == indices(utility, one)[0]


@pytest.mark.parametrize(
    ("name", "per_prompt", "waves", "size"),
    [
        *[("sum_variance", per_prompt, waves, 2) for per_prompt in (4, 8, 16) for waves in (2, 3, 4)],
        ("sum_max_reward", 8, 2, 4),
        ("sum_max_reward", 8, 3, 3),
    ],
)
def test_small_first_waves_are_best(name, per_prompt, waves, size):
    """beyond.md 3: U5 starts with two each, U3 with three or four."""
    utility, prompts = get_utility(name), PromptStates.of(1.0, 1.0, 64)
    price = wave_bound(utility, prompts, per_prompt, waves).price
    for lam in (price - 1e-6, price + 1e-6):
        wave = value_waves(prompts, terms_by_total(utility, 64), np.arange(65), waves, lam)
        assert wave.best()[0] == size
