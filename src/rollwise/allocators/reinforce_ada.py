"""Reinforce-Ada (arXiv 2510.04996): draw in rounds until a prompt has the outcomes a training group needs."""

from __future__ import annotations

import numpy as np

from rollwise.allocators.stages import check_size, first_round, fit_wave, opening
from rollwise.suggest import nearest
from rollwise.types import IntArray, RollwiseError, StepView

STOPS = ("balanced", "positive")


class ReinforceAda:
    """Rounds of `size` rollouts, at most `rounds`, for every prompt whose stop rule is not met. Saves the rest.

    `positive`: leave at the first success. `balanced`: leave with at least half of `group` successes and half failures.
    Which `group` of them train is a curator's choice (`reinforce_ada`), the baseline over all of them the estimator's
    (`global_baseline`). A success is the outcome, whatever reward threshold stands behind it (0.7 in the authors' code).
    Where the budget ends a round early, the least-served prompts come first.

    Args:
        stop: "balanced" or "positive".
        group: n, rollouts of a prompt that train (4 as published).
        rounds: most rounds per prompt.
        size: rollouts per round; None for 8, at most half the average share.

    Raises:
        RollwiseError: an unknown stop rule, a size below 1, a `group` below 2.
    """

    name = "reinforce_ada"
    saves = True

    def __init__(self, stop: str = "balanced", group: int = 4, rounds: int = 4, size: int | None = None) -> None:
        if stop not in STOPS:
            raise RollwiseError(f"{self.name}: no stop rule {stop!r}; {nearest(str(stop), STOPS)}")
        check_size(self.name, "group", group, 2)
        check_size(self.name, "rounds", rounds)
        check_size(self.name, "size", size)
        self.stop = stop
        self.group = group
        self.rounds = rounds
        self.size = size

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now; all 0 once every prompt has what it needs. `rng` is not used."""
        size = self.size or first_round(view, 8)
        done = view.successes >= 1
        if self.stop == "balanced":
            half = -(-self.group // 2)
            done = (view.successes >= half) & (view.failures >= half)
        wanted = np.where(done, 0, np.clip(self.rounds * size - view.paid, 0, size))
        return fit_wave(view, np.maximum(wanted, opening(view, 0)))

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}
