"""Expectations under a Beta without special functions: Gauss-Jacobi nodes, and products a (a+1) ... (a+k-1) in logs."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from rollwise.types import FloatArray

_LONGEST_SUM = 64


def log_rising(x: ArrayLike, k: ArrayLike) -> FloatArray:
    """ln x(x+1)...(x+k-1) = ln Gamma(x+k) - ln Gamma(x), broadcast; x > 0, k >= 0 whole.

    Up to 64 factors are added one by one, so that x = 1e6 loses nothing to the difference of two large logarithms.
    """
    base, count = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(k, dtype=np.int64))
    short = np.where(count <= _LONGEST_SUM, count, 0)
    found = np.zeros(base.shape)
    for j in range(int(short.max(initial=0))):
        found += np.where(j < short, np.log(base + j), 0.0)
    long = count > _LONGEST_SUM
    if long.any():
        found[long] = [
            math.lgamma(start + more) - math.lgamma(start) for start, more in zip(base[long], count[long], strict=True)
        ]
    return found


@lru_cache(maxsize=64)
def beta_nodes(a: float, b: float, count: int = 200) -> tuple[FloatArray, FloatArray]:
    """Rates p [count] and weights [count] with `sum(weights * g(p))` = E[g(p)] under Beta(a, b).

    Exact for polynomials g up to degree `2 count - 1` (Gauss-Jacobi: eigenvalues of the recurrence, Golub and Welsch
    1969; weights `1 / sum of squared orthonormal polynomials`, which keep their relative accuracy in the tails).
    """
    alpha, beta, n = b - 1.0, a - 1.0, np.arange(1.0, count)
    total = 2 * n + alpha + beta
    diagonal = np.empty(count)
    diagonal[0] = (a - b) / (a + b)
    diagonal[1:] = (a - b) * (alpha + beta) / (total * (total + 2))
    squared = np.empty(count - 1)
    if count > 1:
        squared[0] = 4 * a * b / ((a + b) ** 2 * (a + b + 1))
        m, t = n[1:], total[1:]
        squared[1:] = 4 * m * (m + alpha) * (m + beta) * (m + alpha + beta) / (t**2 * (t + 1) * (t - 1))
    off = np.sqrt(squared)
    x = np.linalg.eigvalsh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    before, now, norm = np.zeros(count), np.ones(count), np.ones(count)
    with np.errstate(over="ignore", invalid="ignore"):
        for j in range(count - 1):
            back = off[j - 1] * before if j else 0.0
            before, now = now, ((x - diagonal[j]) * now - back) / off[j]
            norm += now * now
    weights = np.where(np.isfinite(norm), 1.0 / norm, 0.0)
    rates = np.clip((1 + x) / 2, 1e-300, 1 - 1e-16)
    weights /= weights.sum()
    rates.flags.writeable = weights.flags.writeable = False
    return rates, weights
