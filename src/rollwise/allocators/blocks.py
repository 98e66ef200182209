"""Sharing a budget out: over blocks of prompts, and over what blocks have left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rollwise.types import IntArray


def split_slots(size: int, most: int) -> tuple[slice, ...]:
    """Consecutive blocks of at most `most` slots, as equal in size as possible, the larger ones first."""
    count = -(-size // most)
    ends = np.cumsum([size // count + (j < size % count) for j in range(count)]).tolist()
    return tuple(slice(low, high) for low, high in zip([0, *ends[:-1]], ends))


def split_budget(total: int, weights: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> IntArray:
    """(K,) whole numbers within bounds that sum to `total`, as near to proportional as the bounds allow.

    Largest remainders are rounded up, the first of equals. Bounds that bind are met exactly and the rest is shared
    anew. sum(lower) <= total <= sum(upper) is the caller's to ensure, and a weight of 0 needs lower == upper.
    """
    w, low, high = (np.asarray(x, dtype=np.int64) for x in (weights, lower, upper))
    given = low.copy()
    free = low < high
    while free.any():
        rest, whole = total - int(given[~free].sum()), int(w[free].sum())
        below, above = free & (w * rest < low * whole), free & (w * rest > high * whole)
        shortfall, excess = (low * whole - w * rest)[below].sum(), (w * rest - high * whole)[above].sum()
        if not below.any() and not above.any():
            quota, remainder = np.divmod(w * rest, whole)
            given[free] = quota[free]
            missing = total - int(given.sum())
            order = np.argsort(np.where(free, -remainder, 1), kind="stable")
            given[order[:missing]] += 1
            break
        # Fix the side that is off by more; the other may come right once the rest is shared anew.
        fixed = below if shortfall >= excess else above
        given[fixed] = (low if shortfall >= excess else high)[fixed]
        free &= ~fixed
    return given


def total_by_block(values: IntArray, blocks: Sequence[slice]) -> IntArray:
    """(K,) sums of (B,) values over each block."""
    return np.array([values[block].sum() for block in blocks], dtype=np.int64)
