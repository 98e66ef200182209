"""Bounds on a pool: never below the best play, which brute force finds on tiny steps, and equal to the solver's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rollwise.pool import Pool
from rollwise.simulate.bounds import exact_optimum, pool_bound, success_chances
from rollwise.simulate.pools import BetaPool, parse_pool
from rollwise.types import RollwiseError
from rollwise.utilities import UTILITIES, get_utility

POINTS = Pool.histogram([0.0, 0.1, 0.6], [0.3, 0.3, 0.4])
MIXTURE = BetaPool(np.array([0.5, 4.0]), np.array([3.0, 1.0]), np.array([0.7, 0.3]), (1.0, 1.0))


def moment(pool, s, f):
    if isinstance(pool, Pool):
        return float(pool.shares @ (pool.rates**s * (1 - pool.rates) ** f))
    return pool.moment(s, f)


def best_play(utility, pool, prompts, budget):
    """Brute force over all states, no symmetry used."""

    @cache
    def value(state, left):
        if not left:
            s, f = np.array(state).T
            return utility.value(s, f)
        found = []
        for k, (s, f) in enumerate(state):
            weight = moment(pool, s, f)
            chance = moment(pool, s + 1, f) / weight if weight else 0.5
            up = (*state[:k], (s + 1, f), *state[k + 1 :])
            down = (*state[:k], (s, f + 1), *state[k + 1 :])
            found.append(chance * value(up, left - 1) + (1 - chance) * value(down, left - 1))
        return max(found)

    return value(((0, 0),) * prompts, budget)


@pytest.mark.parametrize("pool", [POINTS, MIXTURE, BetaPool.beta(1, 1)], ids=["points", "mixture", "flat"])
@pytest.mark.parametrize("name", UTILITIES)
def test_no_play_exceeds_the_bound(name, pool):
    utility = get_utility(name)
    best = best_play(utility, pool, 2, 6)
    assert best <= pool_bound(utility, pool, 2, 6) + 1e-7


def test_a_single_prompt_has_no_choice_and_the_bound_is_its_value():
    utility = get_utility("sum_variance")
    assert pool_bound(utility, POINTS, 1, 5) == pytest.approx(best_play(utility, POINTS, 1, 5), abs=1e-6)


@pytest.mark.parametrize(("name", "value"), [("sum_variance", 0.17868), ("sum_max_reward", 0.96970)])
def test_published_bounds_per_prompt(name, value):
    # beyond.md 2: Beta(1,1), cap 32
    assert pool_bound(get_utility(name), parse_pool("beta:1,1"), 4, 32, cap=32) / 4 == pytest.approx(value, abs=5e-6)


@pytest.mark.parametrize("name", ["min_variance", "sum_variance", "sum_squared_advantage"])
def test_exact_optimum_lies_below_the_bound(name):
    utility, pool = get_utility(name), parse_pool("beta:1,1")
    best = exact_optimum(utility, pool, 2, 16)
    assert best == pytest.approx({"min_variance": 0.116657, "sum_variance": 0.333410}.get(name, 2.664600), abs=1e-6)
    assert best <= pool_bound(utility, pool, 2, 16)


def test_no_optimum_is_claimed_for_mixtures_and_large_steps():
    utility = get_utility("sum_variance")
    assert exact_optimum(utility, MIXTURE, 2, 8) is None
    assert exact_optimum(utility, POINTS, 2, 8) is None
    assert exact_optimum(utility, parse_pool("beta:1,1"), 32, 256) is None


def test_chances_are_ratios_of_moments():
    for pool in (POINTS, MIXTURE):
        chances = success_chances(pool, 5)
        for n in range(5):
            for s in range(n + 1):
                weight = moment(pool, s, n - s)
                assert chances[n, s] == pytest.approx(moment(pool, s + 1, n - s) / weight)


def test_a_cap_without_room_is_named():
    with pytest.raises(RollwiseError, match="n_max"):
        pool_bound(get_utility("sum_variance"), POINTS, 2, 16, cap=4)
