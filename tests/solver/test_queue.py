"""The index queue plays the index policy: same choices as by hand, from a heap."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.solver.prices import indices, price_bound
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


def play(size: int, per_prompt: int, plays: int) -> tuple[float, float]:
    """Mean worth per prompt of that many steps of the index policy, cap 64, and its standard error."""
    rng, worth = np.random.default_rng(0), []
    for _ in range(plays):
        p, s, f = rng.random(size), np.zeros(size, dtype=int), np.zeros(size, dtype=int)
        queue = IndexQueue(UTILITY, PromptStates.of(np.ones(size), 1.0, 64))
        for _ in range(per_prompt * size):
            slot = queue.next()
            success = bool(rng.random() < p[slot])
            s[slot], f[slot] = s[slot] + success, f[slot] + (not success)
            queue.observe(slot, success)
        worth.append(UTILITY.value(s, f) / size)
    return float(np.mean(worth)), float(np.std(worth, ddof=1) / np.sqrt(plays))


@pytest.mark.parametrize(
    ("size", "published", "margin", "plays"), [(64, 0.17831, 0.00015, 24), (256, 0.17853, 0.00013, 12)]
)
def test_many_prompts_come_near_the_bound(size, published, margin, plays):
    """beyond.md 2: what U5 is worth a prompt at 8 rollouts each; 0.998 and 0.999 of the bound."""
    mean, error = play(size, 8, plays)
    assert mean == pytest.approx(published, abs=3 * np.hypot(error, margin))


@pytest.mark.parametrize("per_prompt", [2, 4])
def test_at_tiny_budgets_many_prompts_keep_99_percent_of_the_bound(per_prompt):
    """beyond.md 2: at B = 256 at least 0.993 of the bound for 1 to 16 rollouts each."""
    bound = price_bound(UTILITY, PromptStates.of(np.ones(256), 1.0, 64), 256 * per_prompt).value / 256
    mean, error = play(256, per_prompt, 48 // per_prompt)
    assert 0.993 * bound - 3 * error <= mean <= bound + 3 * error
