"""GVM (arXiv 2505.02391): rollouts in proportion to a prompt's gradient norm over the root of its success rate.

    n_i ~ G_i / sqrt(p_i + alpha / p_i^(beta-1)),     0 where p_i = 0 or G_i = 0

p_i and G_i from a first stage of the same policy.
"""

from __future__ import annotations

import numpy as np

from rollwise.allocators.base import room
from rollwise.allocators.blocks import split_budget
from rollwise.allocators.stages import check_size, first_round, fit_wave, opening, spend_rest
from rollwise.types import FloatArray, IntArray, RollwiseError, StepView

SCALE = 1 << 20
"""Weights become whole numbers of this size at most, so that rounding is the same on every machine."""


class Gvm:
    """A first stage, then the rest of the budget in proportion to the weights, largest remainders rounded up.

    The published budget is that of the second stage alone; here both count. With no weight anywhere (no success yet) the
    rest is spread evenly.

    Args:
        first: rollouts per prompt of the first stage; None for 8, at most half the average share.
        alpha, beta: the published regulariser of small rates.
        equal: take all gradient norms as equal (`gvm_equal`); else the view must hold `gradient_norms`.

    Raises:
        RollwiseError: `first` below 1, a negative `alpha`; from `next_wave`, gradient norms that are missing.
    """

    name = "gvm"
    saves = False

    def __init__(self, first: int | None = None, alpha: float = 1e-3, beta: float = 2.0, equal: bool = False) -> None:
        check_size(self.name, "first", first)
        if not (0 <= alpha < np.inf and np.isfinite(beta)):
            raise RollwiseError(f"gvm: alpha {alpha}, beta {beta}; give an alpha of 0 or more, such as 0.001")
        self.name = "gvm_equal" if equal else "gvm"
        self.needs = frozenset[str]() if equal else frozenset({"gradient_norm"})
        self.first = first
        self.alpha = alpha
        self.beta = beta
        self.equal = equal

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now. `rng` is not used."""
        missing = opening(view, self.first or first_round(view, 8))
        if missing.any():
            return fit_wave(view, missing)
        weights = gvm_weights(
            view.successes / np.maximum(view.successes + view.failures, 1), self._norms(view), self.alpha, self.beta
        )
        counts = np.zeros(view.size, dtype=np.int64)
        if weights.any():
            whole = np.ceil(weights / weights.max() * SCALE).astype(np.int64)
            space = np.where(whole > 0, room(view), 0)
            counts = split_budget(min(view.budget_left, int(space.sum())), whole, counts, space)
        return spend_rest(view, counts)

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}

    def _norms(self, view: StepView) -> FloatArray:
        if self.equal:
            return np.ones(view.size)
        if view.gradient_norms is None:
            raise RollwiseError(
                "gvm: needs a gradient norm per rollout, and none was reported; use allocator: gvm_equal"
            )
        return view.gradient_norms


def gvm_weights(rates: FloatArray, norms: FloatArray, alpha: float = 1e-3, beta: float = 2.0) -> FloatArray:
    """(B,) weights at success rates and gradient norms (B,); equal norms and p = .125, .5, .875: 2.742, 1.411, 1.068."""
    p = np.where(rates > 0, rates, 1.0)
    return np.where((rates > 0) & (norms > 0), norms / np.sqrt(p + alpha / p ** (beta - 1)), 0.0)
