"""Knapsack RL (arXiv 2509.25849): the step's budget as a knapsack over what each prompt is worth with n rollouts.

    maximise  sum_i (1 - p_i^n_i - (1-p_i)^n_i) p_i (1-p_i)^2     subject to  sum n_i = N,  low <= n_i <= high

p_i from the prompt's previous visit. The value is concave in n, p^n (1-p)^2 + (1-p)^n p^2 being what its gains lose from
one rollout to the next, so that greedy equals the published dynamic programme.
"""

from __future__ import annotations

import numpy as np

from rollwise.allocators.base import room
from rollwise.allocators.greedy import spend_greedily
from rollwise.allocators.stages import check_size, spend_rest
from rollwise.allocators.uniform import level_up
from rollwise.types import FloatArray, IntArray, RollwiseError, StepView


class Knapsack:
    """One decision for the whole budget by the rates the step opens with.

    A rate is the mode of the opening belief, (a-1)/(a+b-2): the previous pass rate exactly where beliefs are carried from a
    flat prior with `prior_discount` 0, a running one otherwise. A prompt never seen, or with a or b below 1, has its mean.
    Without carried beliefs all rates are equal and the rule is uniform. Rates of 0 and 1 are worth nothing: they get `low`,
    and rollouts nobody else can take go to those at 0 first.

    Args:
        low: fewest rollouts per prompt (2 as published), less where the budget is short.
        high: most rollouts per prompt (128 as published), more where the budget leaves no choice.

    Raises:
        RollwiseError: `low` below 0 or `high` below `low`.
    """

    name = "knapsack"
    saves = False

    def __init__(self, low: int = 2, high: int = 128) -> None:
        check_size(self.name, "low", low, 0)
        check_size(self.name, "high", high, max(low, 1))
        self.low = low
        self.high = high

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) all that is left of the budget. `rng` is not used."""
        space = room(view)
        low = np.maximum(view.n_min, min(self.low, view.budget // view.size))
        need = level_up(view.paid, np.minimum(np.maximum(low - view.paid, 0), space), view.budget_left)
        p = opening_rates(view)
        worth, paid = p * (1 - p) ** 2, view.paid + need

        def gain(slot: int, k: int) -> float:
            q, n = p[slot], paid[slot] + k
            return worth[slot] * (q**n * (1 - q) + (1 - q) ** n * q)

        below_high = np.clip(self.high - paid, 0, space - need)
        inside = np.flatnonzero(worth > 0).tolist()
        counts = need + spend_greedily(gain, inside, below_high, view.budget_left - int(need.sum()))
        hopeless = np.where(p == 0, np.clip(self.high - view.paid - counts, 0, space - counts), 0)
        counts += level_up(view.paid + counts, hopeless, view.budget_left - int(counts.sum()))
        return spend_rest(view, counts)

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}


def opening_rates(view: StepView) -> FloatArray:
    """(B,) mode of each opening belief, its mean where the mode is not inside: a or b below 1, or Beta(1,1)."""
    a, b = view.prior_a, view.prior_b
    peaked = (a >= 1) & (b >= 1) & (a + b > 2)
    return np.where(peaked, (a - 1) / np.where(peaked, a + b - 2, 1.0), a / (a + b))


def knapsack_value(rates: FloatArray, counts: IntArray) -> float:
    """sum_i (1 - p_i^n_i - (1-p_i)^n_i) p_i (1-p_i)^2 at rates and counts (B,).

    Raises:
        RollwiseError: shapes that differ.
    """
    p, n = np.asarray(rates, dtype=np.float64), np.asarray(counts)
    if p.shape != n.shape:
        raise RollwiseError(f"knapsack: {p.shape} rates for {n.shape} counts; give one each")
    return float(((1 - p**n - (1 - p) ** n) * p * (1 - p) ** 2).sum())
