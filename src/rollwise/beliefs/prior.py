"""Beta beliefs over a prompt's success probability p.

A belief is Beta(a, b); `s` successes and `f` failures turn it into Beta(a + s, b + f). Unknown outcomes leave it alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.types import FloatArray, IntArray, RollwiseError

FLAT = (1.0, 1.0)
"""Beta(1,1): every success probability equally likely, the published prior of AdaRoll (arXiv 2610.37429)."""

SMALLEST, LARGEST = 1e-9, 1e12
"""Bounds of a prior's parameters: beyond them sums with counts lose the counts, or divisions their digits."""


def parse_prior(value: Any) -> tuple[float, float]:
    """Read a prior given as "a,b", as a pair of numbers, or None for Beta(1,1).

    Raises:
        RollwiseError: if it is not two numbers between `SMALLEST` and `LARGEST`.
    """
    if value is None:
        return FLAT
    parts = value.split(",") if isinstance(value, str) else value
    try:
        a, b = (float(part) for part in parts)
    except (TypeError, ValueError):
        a, b = np.nan, np.nan
    if 0 < a < np.inf and 0 < b < np.inf and not (min(a, b) >= SMALLEST and max(a, b) <= LARGEST):
        raise RollwiseError(
            f"prior: {value!r} is out of range; give two numbers from {SMALLEST:g} to {LARGEST:g}, such as 1,1"
        )
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise RollwiseError(f"prior: {value!r} is not a Beta prior; give two positive numbers, such as 1,1")
    return a, b


def check_priors(name: str, values: ArrayLike, size: int) -> FloatArray:
    """Beta beliefs of `size` prompts, one pair or an array (B, 2), as an array (B, 2) of its own.

    Raises:
        RollwiseError: naming the setting `name`: another shape, or a number outside `SMALLEST` to `LARGEST`.
    """
    try:
        pairs = np.broadcast_to(np.asarray(values, dtype=np.float64), (size, 2)).copy()
    except (TypeError, ValueError):
        raise RollwiseError(
            f"{name}: does not fit {size} prompts; give one pair such as (1, 1), or an array of shape ({size}, 2)"
        ) from None
    within = ((pairs >= SMALLEST) & (pairs <= LARGEST)).all(axis=1)
    if not within.all():
        a, b = pairs[~within][0]
        raise RollwiseError(
            f"{name}: Beta({a:g}, {b:g}) is out of range; give two numbers from {SMALLEST:g} to {LARGEST:g}, such as 1,1"
        )
    return pairs


def mean(a: FloatArray, b: FloatArray) -> FloatArray:
    """E[p] = a / (a + b), elementwise."""
    return a / (a + b)


def update(a: FloatArray, b: FloatArray, successes: IntArray, failures: IntArray) -> tuple[FloatArray, FloatArray]:
    """Posterior (a + s, b + f), elementwise."""
    return a + successes, b + failures
