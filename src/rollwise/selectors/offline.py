"""What CERO would do if it knew every prompt's value from the start: the offline optimum that its regret is measured by."""

from __future__ import annotations

import heapq

import numpy as np

from rollwise.types import FloatArray, IntArray


def fill_water(values: FloatArray, budget: float, most: float, ratio: float, curvature: float = 1.0) -> FloatArray:
    """(M,) units z that maximise `sum_i 1 - exp(-c_i z_i)`, `c_i = 4 lam q_i / R`, with sum z = B and 0 <= z <= Z.

        z_i = clip(ln(c_i / xi) / c_i, 0, Z)

    xi by bisection. Prompts of value 0 get nothing; where the caps bind for all others, less than B is used.
    """
    c = 4.0 * curvature * values / ratio
    useful = c > 0
    if useful.sum() * most <= budget:
        return np.where(useful, most, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(useful, np.log(c), -np.inf)

        def spread(level: float) -> FloatArray:
            return np.where(useful, np.clip((logs - level) / c, 0.0, most), 0.0)

        low, high = float((logs - c * most)[useful].min()), float(logs[useful].max())
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if spread(middle).sum() > budget else (low, middle)
        return spread(high)


def fill_greedily(values: FloatArray, budget: int, most: int, ratio: float, curvature: float = 1.0) -> IntArray:
    """(M,) the same in whole units: one at a time to the largest `(1 - exp(-c)) exp(-c l)`; optimal as they fall in l.

    Ties go to the lowest place. O(M + B log M).
    """
    c = 4.0 * curvature * values / ratio
    gains = -np.expm1(-c)
    given = np.zeros(len(values), dtype=np.int64)
    queue = [(-gain, place) for place, gain in enumerate(gains.tolist()) if gain > 0]
    heapq.heapify(queue)
    for _ in range(budget):
        if not queue:
            break
        gain, place = queue[0]
        given[place] += 1
        if given[place] < most:
            heapq.heapreplace(queue, (gain * float(np.exp(-c[place])), place))
        else:
            heapq.heappop(queue)
    return given
