"""The index rule of the published waves table: prompts not yet mixed first, fewest rollouts first, running ones counted.

It looks no further than the next wave, unlike `adaroll` with `min_squared_advantage`, which plans to the end of the step.
"""

from __future__ import annotations

import numpy as np

from rollwise.allocators.base import room, wave_size
from rollwise.types import IntArray, StepView


class IndexRule:
    """Even waves, each filled one rollout at a time; ties go to the lowest slot."""

    name = "index_rule"
    saves = False

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now."""
        mixed = (view.successes > 0) & (view.failures > 0)
        given, space = np.zeros(view.size, dtype=np.int64), room(view)
        for _ in range(wave_size(view)):
            order = np.lexsort((view.paid + given, mixed, given >= space))
            given[order[0]] += 1
        return given

    def metrics(self) -> dict[str, float]:
        """Nothing."""
        return {}
