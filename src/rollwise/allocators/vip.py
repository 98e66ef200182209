"""VIP (arXiv 2602.01601): the step's gradient variance, predicted from each prompt's success rate, at its minimum.

    RLOO:     Var_i ~ p(1-p) / (n-1)          n = 1 + sqrt(p(1-p) / lam)
    Dr.GRPO:  Var_i ~ p(1-p) (n-1) / n^2      n the root of p(1-p) (n-2) / n^3 = lam,  n >= 3

with sum n_i = N and low <= n_i <= high; lam by bisection, floors, and the remainder to the largest decreases.
"""

from __future__ import annotations

import numpy as np

from rollwise.allocators.base import room
from rollwise.allocators.greedy import spend_greedily
from rollwise.allocators.stages import check_size, spend_rest
from rollwise.allocators.uniform import level_up
from rollwise.suggest import nearest
from rollwise.types import FloatArray, IntArray, RollwiseError, StepView

LEAST = {"rloo": 2, "dr_grpo": 3}
"""Fewest rollouts for which the variance of the form falls with n."""


class Vip:
    """One decision for the whole budget, by the means of the beliefs the step opens with.

    Where those come from is the prior's business: `GaussianProcessPrior` on embeddings of the prompts as published, the
    carried Beta as the cheap form. With one prior for all prompts the rule is uniform.

    Args:
        form: "rloo" or "dr_grpo", whose variance is minimised.
        low: fewest rollouts per prompt; None for 2 (`rloo`) or 3 (`dr_grpo`), less where the budget is short.
        high: most rollouts per prompt (32 as published), more where the budget leaves no choice.

    Raises:
        RollwiseError: an unknown form, `low` or `high` out of range.
    """

    name = "vip"
    saves = False

    def __init__(self, form: str = "rloo", low: int | None = None, high: int = 32) -> None:
        if form not in LEAST:
            raise RollwiseError(f"vip: no form {form!r}; {nearest(str(form), LEAST)}")
        check_size(self.name, "low", low, LEAST[form])
        check_size(self.name, "high", high, low or LEAST[form])
        self.form = form
        self.low = low or LEAST[form]
        self.high = high

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) all that is left of the budget. `rng` is not used."""
        space = room(view)
        low = np.maximum(view.n_min, min(self.low, view.budget // view.size))
        need = level_up(view.paid, np.minimum(np.maximum(low - view.paid, 0), space), view.budget_left)
        p = view.prior_a / (view.prior_a + view.prior_b)
        lower = view.paid + need
        upper = np.maximum(lower, np.minimum(self.high, view.paid + space))
        counts = minimise_variance(p * (1 - p), view.budget, lower, upper, self.form) - view.paid
        return spend_rest(view, counts)

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}


def minimise_variance(spread: FloatArray, total: int, lower: IntArray, upper: IntArray, form: str) -> IntArray:
    """(B,) counts within bounds (B,), in sum `total` where the bounds allow, at spreads p(1-p) (B,).

    sum(lower) <= total is the caller's to ensure; prompts without spread stay at `lower`.
    """
    exact = continuous_counts(spread, total, lower, upper, form)
    counts = np.clip(np.floor(exact + 1e-9).astype(np.int64), lower, upper)
    rest = total - int(counts.sum())

    def gain(slot: int, k: int) -> float:
        # below the least count the form's variance is undefined or rises: count it as at the least
        n = max(int(counts[slot]) + k, LEAST[form])
        return float(spread[slot]) * (variance(n, form) - variance(n + 1, form))

    return counts + spend_greedily(gain, np.flatnonzero(spread > 0).tolist(), upper - counts, max(rest, 0))


def variance(n: int, form: str) -> float:
    """Variance of a prompt's gradient with n rollouts, in units of 4 sigma_Z^2 p(1-p)."""
    return 1 / (n - 1) if form == "rloo" else (n - 1) / n**2


def continuous_counts(spread: FloatArray, total: float, lower: IntArray, upper: IntArray, form: str) -> FloatArray:
    """(B,) real-valued solution: bisection on log lam, in which the sum of counts falls."""

    def counts(lam: float) -> FloatArray:
        if form == "rloo":
            return np.clip(1 + np.sqrt(spread / lam), lower, upper)
        return np.clip(root_dr_grpo(spread / lam), lower, upper)

    low, high = np.log(1e-15), np.log(10.0)
    for _ in range(60):
        middle = (low + high) / 2
        if counts(float(np.exp(middle))).sum() > total:
            low = middle
        else:
            high = middle
    return counts(float(np.exp(high)))


def root_dr_grpo(ratio: FloatArray) -> FloatArray:
    """(B,) largest n with n^3 / (n-2) = `ratio` (B,), by the trigonometric solution of the cubic; 0 below its least, 27."""
    r = np.maximum(ratio, 27.0)
    root = 2 * np.sqrt(r / 3) * np.cos(np.arccos(-3 * np.sqrt(3 / r)) / 3)
    return np.where(ratio >= 27, root, 0.0)
