"""Minima over prompts on steps of any size: the look-ahead rule of minimum variance, and a separable stand-in.

Minimum squared advantage and minimum of maximum rewards have rules of their own (`closed`). Minimum variance does not:

    rule        prompts not yet mixed first, fewest rollouts first; then lowest variance, of equals the largest group,
                whose variance one more rollout moves least
    stand-in    sum_i -exp(-h_i / tau): a soft minimum that prices and waves can work with

There is no limit theorem for tau -> 0, which minimises the expected number of prompts at the lowest h; `TAU` was chosen
by play in four waves (B = 4, 8, 16, eight rollouts each), where 0.05 to 0.08 is best for variances, which end at 0.25.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rollwise.types import FloatArray, IntArray
from rollwise.utilities import Utility

TAU = 0.25
"""Default tau, as a share of how far h ranges over groups of up to eight."""

_GROUP = 8


class _SoftMinimum:
    """-exp(-h/tau) of another utility's h; equal for equal utilities, so that tables can be shared."""

    def __init__(self, utility: Utility, tau: float) -> None:
        self.utility, self.tau = utility, tau

    def __call__(self, successes: IntArray, failures: IntArray) -> FloatArray:
        return -np.exp(-np.asarray(self.utility.term(successes, failures), dtype=np.float64) / self.tau)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SoftMinimum) and (self.utility, self.tau) == (other.utility, other.tau)

    def __hash__(self) -> int:
        return hash((self.utility, self.tau))


@lru_cache(maxsize=64)
def stand_in(utility: Utility, tau: float | None = None) -> Utility:
    """A sum to play instead of a minimum where no exact table fits; a sum comes back as it is.

    Args:
        tau: softness in the unit of h; smaller minds only the worst prompts. None for `TAU` of the range of h.
    """
    if utility.kind == "sum":
        return utility
    if tau is None:
        few = _GROUP if utility.n_limit is None else min(_GROUP, utility.n_limit)
        table = utility.table(few)
        tau = TAU * (float(table.max() - table.min()) or 1.0)
    return Utility(f"soft {utility.name}", "sum", _SoftMinimum(utility, tau), utility.advantage_form, utility.n_limit)


def rule_keys(n_max: int) -> FloatArray:
    """[n_max+1, n_max+1] keys over (s, f) of the minimum-variance rule, for `policies.evaluate_rule`."""
    s, f = np.indices((n_max + 1, n_max + 1))
    n = np.maximum(s + f, 1)
    mixed = (s > 0) & (f > 0)
    return np.where(mixed, -s * f / (n * n) + 1e-9 * n, n_max + 1.0 - (s + f))
