"""How rows of unequal groups are weighed against each other in the loss."""

from __future__ import annotations

import numpy as np

from rollwise.suggest import nearest
from rollwise.types import FloatArray, IntArray, RollwiseError

WEIGHTINGS = ("per_rollout", "per_prompt")


def row_weights(index: IntArray, weighting: str) -> FloatArray:
    """(n,) weight of each row, mean 1; `index` (n,) is each row's group.

    `per_rollout` leaves every row at 1, so a prompt counts in proportion to its rollouts (what concatenating does).
    `per_prompt` gives row j of a group of n_j the weight `n / (K n_j)`, so that all K groups count alike.

    Raises:
        RollwiseError: for an unknown weighting.
    """
    check_weighting(weighting)
    if weighting == "per_rollout" or not len(index):
        return np.ones(len(index))
    sizes = np.bincount(index)
    return len(index) / (np.count_nonzero(sizes) * sizes[index])


def check_weighting(weighting: str) -> None:
    """Raise `RollwiseError` unless `weighting` is one of `WEIGHTINGS`."""
    if weighting not in WEIGHTINGS:
        raise RollwiseError(f"weighting: no {weighting!r}; {nearest(weighting, WEIGHTINGS)}")
