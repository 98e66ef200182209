"""Neyman allocation under beliefs: rollouts go where they lower the variance of the objective's gradient most.

    maximise  sum_i h_i,   h = -E[w^2 p q] / (n - 1),   E[pq] = ab / ((a+b)(a+b+1)) at the end of the step

with the group mean as baseline (n in place of n - 1 with a baseline of the estimator's own), w the frozen weight of the
objective. A sum whose terms differ between prompts, so the price decomposition plays it (`solver.plan`).
"""

from __future__ import annotations

import numpy as np

from rollwise.allocators.adaroll import check_bounds
from rollwise.allocators.base import room
from rollwise.allocators.priced import plan_view
from rollwise.objectives import objective_table
from rollwise.solver.prompts import PromptTables
from rollwise.types import FloatArray, IntArray, RollwiseError, StepView


class Neyman:
    """Minimum variance of `sum_i w_i * gradient_i` at the step's budget, in waves; any prior and weight per prompt.

    Args:
        least: rollouts a prompt needs for its gradient to be estimated at all: 2 with the group mean as baseline, 1 with
            a baseline that needs no group (`predictive`).

    Raises:
        RollwiseError: `least` is neither 1 nor 2; from `next_wave`, naming `n_min` or `n_max`.
    """

    name = "neyman"
    saves = False

    def __init__(self, least: int = 2) -> None:
        if least not in (1, 2):
            raise RollwiseError(f"least {least} is out of range: 2 with the group mean as baseline, 1 with its own")
        self.least = least

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now; `rng` is not used."""
        need, space = np.maximum(view.n_min - view.paid, 0), room(view)
        check_bounds(view, need, space)
        if view.budget_left == 0:
            return np.zeros(view.size, dtype=np.int64)
        weight = np.ones(view.size) if view.objective_weights is None else view.objective_weights
        kinds, table = np.unique(np.stack([view.prior_a, view.prior_b, weight]), axis=1, return_inverse=True)
        a, b, w = kinds

        def tables(n: int, some: IntArray) -> FloatArray:
            return objective_table(a[some], b[some], w[some], max(n, self.least), self.least)[:, : n + 1, : n + 1]

        utility = PromptTables("neyman", tables, a.size)
        return plan_view(utility, view, need, space, table=table.reshape(-1))

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}
