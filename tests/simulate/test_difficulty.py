"""Rollouts until first solved."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.pool import Pool
from rollwise.simulate.difficulty import difficulty, entropy, first_solved
from rollwise.simulate.pools import parse_pool
from rollwise.types import RollwiseError


def test_flat_pool_by_hand():
    # E[(1-p)^n] = 1/(n+1): 1/2 at once, 1/6 at the second, 2/15 at the third or fourth
    found = difficulty(parse_pool("beta:1,1"), limit=4)
    assert found.bins == ("1", "2", "3-4", "unsolved")
    assert found.shares == pytest.approx((1 / 2, 1 / 6, 2 / 15, 1 / 5))
    assert found.rollouts == pytest.approx(1 + 1 / 2 + 2 / 3)


def test_bins_are_the_papers():
    found = difficulty(parse_pool("hard"))
    assert found.bins == ("1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128", "unsolved")
    assert sum(found.shares) == pytest.approx(1.0)


def test_sampling_agrees_and_knows_the_rollout():
    pool, rng = parse_pool("easy"), np.random.default_rng(0)
    rates = pool.draw(20_000, rng)
    found, solved = first_solved(rates, 128, rng)
    assert found.shares == pytest.approx(difficulty(pool).shares, abs=0.012)
    assert found.rollouts == pytest.approx(difficulty(pool).rollouts, rel=0.05)
    assert np.nanmin(solved) == 1.0
    assert np.mean(solved <= 4) == pytest.approx(sum(found.shares[:3]))
    never, _ = first_solved(np.zeros(5), 8, rng)
    assert never.shares[-1] == 1.0 and never.rollouts == 8.0


def test_entropy_of_alike_and_of_spread_prompts():
    assert entropy(np.array([1.0, 0, 0])) == 0.0
    assert entropy(np.ones(9)) == pytest.approx(1.0)
    assert difficulty(Pool.histogram([1.0], [1.0])).entropy == 0.0


def test_a_limit_between_powers_is_refused():
    with pytest.raises(RollwiseError, match="limit"):
        difficulty(parse_pool("hard"), limit=100)
