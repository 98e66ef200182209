"""HORA (arXiv 2605.07114): after a first look, further rollouts go where a success among them gains most chance.

    H(n) = 1 - E[(1-p)^n],    D(l) = H(l+1) - H(l) = E[p (1-p)^l]    under the posterior Beta(a + s, b + f)

D falls in l, so giving one rollout after the other to the largest D is the optimum of sum_i H(n_i).
"""

from __future__ import annotations

import numpy as np

from rollwise.allocators.base import room
from rollwise.allocators.greedy import spend_greedily
from rollwise.allocators.stages import check_size, first_round, fit_wave, opening, spend_rest
from rollwise.types import IntArray, StepView


class Hora:
    """A stage of `first` rollouts each, then the rest of the budget by marginal hit utility.

    Args:
        first: rollouts per prompt before anything is decided; None for 4, at most half the average share.
        rounds: decisions the rest is split into, with posteriors refreshed between them (1 as published).
        mass_aware: count the rollouts already drawn, so that D(l) becomes the chance that the first success of the whole
            group is that rollout. As published a hit counts among the further rollouts only, and a prompt that succeeded
            every time has the largest first gain.

    Raises:
        RollwiseError: `first` or `rounds` below 1.
    """

    name = "hora"
    saves = False

    def __init__(self, first: int | None = None, rounds: int = 1, mass_aware: bool = False) -> None:
        check_size(self.name, "first", first)
        check_size(self.name, "rounds", rounds)
        self.first = first
        self.rounds = rounds
        self.mass_aware = mass_aware

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now; running ones count as further rollouts already given. `rng` is not used."""
        first = self.first or first_round(view, 4)
        missing = opening(view, first)
        if missing.any():
            return fit_wave(view, missing)
        a, b = view.prior_a + view.successes, view.prior_b + view.failures
        known = view.successes + view.failures
        drawn = view.pending + (known if self.mass_aware else 0)
        chances = [HitGains(float(a[i]), float(b[i])) for i in range(view.size)]
        amount = self._round_size(view, first)
        counts = spend_greedily(
            lambda slot, k: chances[slot](int(drawn[slot]) + k), range(view.size), room(view), amount
        )
        return counts if amount < view.budget_left else spend_rest(view, counts)

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}

    def _round_size(self, view: StepView, first: int) -> int:
        opened = int(np.minimum(np.maximum(view.n_min, first), view.n_max).sum())
        size = -(-max(view.budget - opened, 1) // self.rounds)
        return min(view.budget_left, -(-size // view.quantum) * view.quantum)


class HitGains:
    """D(l) = a / (a+b) * prod_{j<l} (b+j) / (a+b+j+1) of one prompt, computed once for each l asked for."""

    def __init__(self, a: float, b: float) -> None:
        self._a, self._b = a, b
        self._known = [a / (a + b)]

    def __call__(self, l: int) -> float:  # noqa: E741 (the paper's letter)
        while len(self._known) <= l:
            j = len(self._known) - 1
            self._known.append(self._known[-1] * (self._b + j) / (self._a + self._b + j + 1))
        return self._known[l]
