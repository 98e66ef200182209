"""Filling a wave: each rollout against expectations written out over every outcome of the running ones."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollwise.solver import solve
from rollwise.types import RollwiseError


def chance(s: int, n: int, a: float, b: float) -> float:
    """Beta-binomial by drawing one rollout after the other."""
    p, up, down = float(comb(n, s)), a, b
    for _ in range(s):
        p, up = p * up / (up + down), up + 1
    for _ in range(n - s):
        p, down = p * down / (up + down), down + 1
    return p


def expected_value(solved, s, f, running):
    a, b = solved.prior
    total = 0.0
    for came in product(*(range(k + 1) for k in running)):
        weight = np.prod([chance(x, k, a + si, b + fi) for x, k, si, fi in zip(came, running, s, f)])
        total += weight * solved.value_at(s + came, f + running - came)
    return total


def fill_by_hand(solved, s, f, pending, room, paid, share):
    given = np.zeros_like(s)
    for _ in range(share):
        hopes = {}
        for i in range(s.size):
            if given[i] < room[i] and s[i] + f[i] + pending[i] + given[i] < solved.space.cap:
                hopes[i] = expected_value(solved, s, f, pending + given + np.eye(s.size, dtype=int)[i])
        best = max(hopes.values())
        given[min((i for i in hopes if hopes[i] >= best - 1e-12), key=lambda i: (paid[i] + given[i], i))] += 1
    return given


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_wave_is_filled_by_expected_value_and_no_exchange_betters_it(data):
    name = data.draw(st.sampled_from(["min_variance", "sum_variance", "sum_max_reward", "sum_squared_advantage"]))
    prior = data.draw(st.sampled_from([(1.0, 1.0), (0.5, 2.0)]))
    prompts, budget = 3, 8
    n_max = data.draw(st.sampled_from([None, 4]))
    solved = solve(name, prompts, budget, prior=prior, n_max=n_max)
    counts = np.zeros((3, prompts), dtype=int)
    for _ in range(data.draw(st.integers(0, 6))):
        kind, i = data.draw(st.integers(0, 2)), data.draw(st.integers(0, prompts - 1))
        counts[kind, i] += counts[:, i].sum() < solved.space.cap
    s, f, pending = counts
    taken = counts.sum(axis=0)
    room = np.array([data.draw(st.integers(0, int(solved.space.cap - n))) for n in taken])
    share = data.draw(st.integers(0, int(min(room.sum(), budget - taken.sum()))))
    paid = taken + np.array(data.draw(st.lists(st.integers(0, 2), min_size=3, max_size=3)))
    given = solved.fill([s], [f], [pending], [share], room=[room], paid=[paid])[0]
    by_hand = fill_by_hand(solved, s, f, pending, room, paid, share)
    assert given.sum() == share and (given <= room).all() and (given >= 0).all()
    if share == 1:
        np.testing.assert_array_equal(given, by_hand)
    worth = expected_value(solved, s, f, pending + given)
    assert worth >= expected_value(solved, s, f, pending + by_hand) - 1e-11
    for i, j in product(range(prompts), repeat=2):
        moved = given - np.eye(prompts, dtype=int)[i] + np.eye(prompts, dtype=int)[j]
        if moved.min() >= 0 and (moved <= room).all():
            assert worth >= expected_value(solved, s, f, pending + moved) - 1e-11


@pytest.mark.parametrize("name", ["min_variance", "sum_variance", "sum_max_reward", "sum_squared_advantage"])
@pytest.mark.parametrize("share", [2, 6, 12])
def test_a_wave_from_the_start_is_the_best_of_all_waves(name, share):
    solved = solve(name, 3, 12)
    nothing = np.zeros(3, dtype=int)
    waves = [np.array(k) for k in product(range(share + 1), repeat=3) if sum(k) == share]
    best = max(expected_value(solved, nothing, nothing, k) for k in waves)
    given = solved.fill([nothing], [nothing], [nothing], [share])[0]
    assert expected_value(solved, nothing, nothing, given) == pytest.approx(best, abs=1e-11)


@pytest.mark.parametrize("name", ["min_variance", "sum_variance", "sum_max_reward"])
def test_one_rollout_without_pending_is_the_sequential_policy(name):
    solved = solve(name, 3, 9)
    rng = np.random.default_rng(0)
    s, f = rng.integers(0, 2, (50, 3)), rng.integers(0, 2, (50, 3))
    given = solved.fill(s, f, np.zeros_like(s), np.ones(50, dtype=int))
    np.testing.assert_array_equal(given.argmax(axis=1), solved.actions(s, f))
    assert (given.sum(axis=1) == 1).all()


def test_a_whole_budget_at_once_is_spread_not_piled():
    given = solve("min_variance", 4, 32).fill(*np.zeros((3, 1, 4), dtype=int), [32])
    np.testing.assert_array_equal(given, [[8, 8, 8, 8]])


def test_equal_blocks_are_answered_alike():
    solved = solve("sum_variance", 2, 6)
    s = np.array([[1, 0], [0, 0], [1, 0], [0, 0]])
    given = solved.fill(s, np.zeros_like(s), np.zeros_like(s), [3, 2, 3, 2])
    np.testing.assert_array_equal(given[0], given[2])
    np.testing.assert_array_equal(given[1], given[3])
    np.testing.assert_array_equal(given.sum(axis=1), [3, 2, 3, 2])


def test_a_share_without_room_is_refused():
    solved = solve("min_variance", 2, 4, n_max=2)
    with pytest.raises(RollwiseError, match="n_max 2"):
        solved.fill([[1, 0]], [[1, 0]], [[0, 1]], [2])
