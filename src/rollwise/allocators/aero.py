"""AERO's rescue (arXiv 2602.14338): explore every prompt, then draw a little more, step by step, for those that failed."""

from __future__ import annotations

import numpy as np

from rollwise.allocators.stages import check_size, first_round, fit_wave, opening
from rollwise.types import IntArray, RollwiseError, StepView


class Aero:
    """`explore` rollouts each, then `increment` more at a time while successes / known <= `rescue_rate`, up to `total`.

    Saves the rest. Which rows train is a curator's choice (`aero`), the baseline of groups that stay equal the estimator's
    (`bayesian`). Where the budget ends a rescue early, the least-served prompts come first.

    Args:
        explore: rollouts per prompt at first; None for 8, at most half the average share.
        total: most rollouts per prompt; None for twice `explore` (16 as published).
        increment: rollouts added at a time (2 as published).
        rescue_rate: success rate at or below which a prompt is rescued (0 as published: only after no success at all).

    Raises:
        RollwiseError: a size below 1, `total` below `explore`, a rate outside [0, 1).
    """

    name = "aero"
    saves = True

    def __init__(
        self,
        explore: int | None = None,
        total: int | None = None,
        increment: int = 2,
        rescue_rate: float = 0.0,
    ) -> None:
        check_size(self.name, "explore", explore)
        check_size(self.name, "total", total, explore or 1)
        check_size(self.name, "increment", increment)
        if not 0 <= rescue_rate < 1:
            raise RollwiseError(
                f"{self.name}: rescue_rate {rescue_rate} is out of range; give a rate from 0 to below 1"
            )
        self.explore = explore
        self.total = total
        self.increment = increment
        self.rescue_rate = rescue_rate

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now; all 0 once no prompt is left to rescue. `rng` is not used."""
        explore = self.explore or first_round(view, 8)
        missing = opening(view, explore)
        if missing.any():
            return fit_wave(view, missing)
        low = view.successes <= self.rescue_rate * (view.successes + view.failures)
        wanted = np.clip((self.total or 2 * explore) - view.paid, 0, self.increment)
        return fit_wave(view, np.where(low, wanted, 0))

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}
