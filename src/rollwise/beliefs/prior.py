"""Beta beliefs over a prompt's success probability p.

A belief is Beta(a, b); `s` successes and `f` failures turn it into Beta(a + s, b + f). Unknown outcomes leave it alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rollwise.types import FloatArray, IntArray, RollwiseError

FLAT = (1.0, 1.0)
"""Beta(1,1): every success probability equally likely, the published prior of AdaRoll (arXiv 2610.37429)."""


def parse_prior(value: Any) -> tuple[float, float]:
    """Read a prior given as "a,b", as a pair of numbers, or None for Beta(1,1).

    Raises:
        RollwiseError: if it is not two positive finite numbers.
    """
    if value is None:
        return FLAT
    parts = value.split(",") if isinstance(value, str) else value
    try:
        a, b = (float(part) for part in parts)
    except (TypeError, ValueError):
        a, b = np.nan, np.nan
    if not (np.isfinite(a) and np.isfinite(b) and a > 0 and b > 0):
        raise RollwiseError(f"prior: {value!r} is not a Beta prior; give two positive numbers, such as 1,1")
    return a, b


def mean(a: FloatArray, b: FloatArray) -> FloatArray:
    """E[p] = a / (a + b), elementwise."""
    return a / (a + b)


def update(a: FloatArray, b: FloatArray, successes: IntArray, failures: IntArray) -> tuple[FloatArray, FloatArray]:
    """Posterior (a + s, b + f), elementwise."""
    return a + successes, b + failures
