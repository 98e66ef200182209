"""The same number of rollouts for every prompt: standard GRPO, and the baseline of every comparison."""

from __future__ import annotations

import numpy as np

from rollwise.allocators.base import room, wave_size
from rollwise.types import IntArray, StepView


class Uniform:
    """Spreads the budget evenly, leftovers to the lowest slots: `n_i = N // B` or `N // B + 1`.

    Looks at no outcome, so it behaves the same in one wave or in many.
    """

    name = "uniform"
    saves = False

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts that raise the least-served prompts first; the wave is `wave_size(view)`."""
        return level_up(view.paid, room(view), wave_size(view))

    def metrics(self) -> dict[str, float]:
        return {}


class Observe(Uniform):
    """Trains exactly as `uniform` does, and asks the trainer to report what the adaptive rules would have changed.

    The comparison itself is `rollwise.counterfactual.would_have_changed`.
    """

    name = "observe"


def level_up(paid: IntArray, room: IntArray, amount: int) -> IntArray:
    """(B,) non-negative counts, in sum `min(amount, room.sum())`, that make `paid + counts` as level as possible.

    As if one rollout at a time went to the least-served prompt that has room, ties to the lowest slot.
    """
    counts = np.zeros_like(paid)
    left = min(amount, int(room.sum()))
    while left > 0:
        has_room = counts < room
        levels = paid + counts
        level = levels[has_room].min()
        lowest = np.flatnonzero(has_room & (levels == level))[:left]
        above = levels[has_room & (levels > level)]
        # All of them rise together until the next level, a cap, or the end of the budget.
        rise = min((room - counts)[lowest].min(), left // len(lowest), above.min() - level if above.size else left)
        counts[lowest] += rise
        left -= int(rise) * len(lowest)
    return counts
