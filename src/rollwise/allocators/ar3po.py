"""AR3PO's adaptive rollout (arXiv 2509.25808): in stages, a prompt leaves after the stage that brought a first success."""

from __future__ import annotations

import numpy as np

from rollwise.allocators.stages import check_size, first_round, fit_wave, opening
from rollwise.types import IntArray, StepView


class Ar3po:
    """Up to `stages` stages of `size` rollouts for every prompt that is still without a success. Saves the rest.

    One success is enough, failures are not asked for: a prompt that succeeds throughout its first stage is dead and left
    so. The reuse of stored successes is a curator's (`ar3po_reuse`). Stage sizes are not in the paper's readable parts:
    4 stages of 4 are assumed. Where the budget ends a stage early, the least-served prompts come first.

    Args:
        stages: most stages per prompt.
        size: rollouts per stage; None for 4, at most half the average share.

    Raises:
        RollwiseError: `stages` or `size` below 1.
    """

    name = "ar3po"
    saves = True

    def __init__(self, stages: int = 4, size: int | None = None) -> None:
        check_size(self.name, "stages", stages)
        check_size(self.name, "size", size)
        self.stages = stages
        self.size = size

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now; all 0 once every prompt has a success or its last stage. `rng` is not used."""
        size = self.size or first_round(view, 4)
        left = np.clip(self.stages * size - view.paid, 0, size)
        wanted = np.where(view.successes == 0, left, 0)
        return fit_wave(view, np.maximum(wanted, opening(view, 0)))

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}
