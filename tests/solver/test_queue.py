"""The index queue plays the index policy: same choices as by hand, from a heap."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.solver.prices import indices
from rollwise.solver.prompts import PromptStates
from rollwise.solver.queue import IndexQueue
from rollwise.types import RollwiseError
from rollwise.utilities import get_utility

UTILITY = get_utility("sum_variance")


def test_it_serves_the_largest_index_ties_by_fewest_rollouts_then_slot():
    rng = np.random.default_rng(3)
    a, b = rng.choice([0.5, 1.0, 2.0], 9), rng.choice([0.5, 1.0, 2.0], 9)
    s, f = np.zeros(9, dtype=int), np.zeros(9, dtype=int)
    queue = IndexQueue(UTILITY, PromptStates.of(a, b, 12))
    for _ in range(60):
        index = np.round(indices(UTILITY, PromptStates.of(a, b, 12 - s - f, successes=s, failures=f)), 12)
        expected = np.lexsort((np.arange(9), s + f, -index))[0]
        slot = queue.next()
        assert slot == expected
        success = bool(rng.random() < 0.4)
        s[slot], f[slot] = s[slot] + success, f[slot] + (not success)
        queue.observe(slot, success)


def test_a_prompt_with_a_rollout_running_waits_and_all_caps_are_kept():
    queue = IndexQueue(UTILITY, PromptStates.of([1.0, 1.0], 1.0, 2))
    assert [queue.next(), queue.next(), queue.next()] == [0, 1, None]
    queue.observe(1, None)
    assert queue.next() == 1 and queue.next() is None
    queue.observe(1, True)
    assert queue.next() is None


def test_an_outcome_nobody_waits_for_is_refused():
    with pytest.raises(RollwiseError, match="slot 0"):
        IndexQueue(UTILITY, PromptStates.of([1.0], 1.0, 2)).observe(0, True)


def test_two_hundred_prompts_come_near_the_bound():
    """beyond.md 2: U5 at B = 256 is worth 0.17853 +- 0.00013 a prompt, 0.999 of the bound."""
    rng, size = np.random.default_rng(0), 256
    worth = []
    for _ in range(12):
        p, s, f = rng.random(size), np.zeros(size, dtype=int), np.zeros(size, dtype=int)
        queue = IndexQueue(UTILITY, PromptStates.of(np.ones(size), 1.0, 64))
        for _ in range(8 * size):
            slot = queue.next()
            success = bool(rng.random() < p[slot])
            s[slot], f[slot] = s[slot] + success, f[slot] + (not success)
            queue.observe(slot, success)
        worth.append(UTILITY.value(s, f) / size)
    error = np.std(worth, ddof=1) / np.sqrt(len(worth))
    assert np.mean(worth) == pytest.approx(0.17853, abs=3 * np.hypot(error, 0.00013))
