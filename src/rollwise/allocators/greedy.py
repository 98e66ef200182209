"""One rollout after the other to the prompt that gains most by it: optimal for separable concave values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heapreplace

import numpy as np

from rollwise.types import IntArray

DIGITS = 14
"""Gains are compared to this many decimals, so that equal ones tie whatever way they were computed."""


def spend_greedily(gain: Callable[[int, int], float], slots: Iterable[int], space: IntArray, amount: int) -> IntArray:
    """(B,) at most `amount` further rollouts among `slots`, none beyond `space` (B,).

    `gain(slot, k)` is what the (k+1)-th further rollout of a prompt adds, not increasing in k: then no other allocation
    gains more in sum (exchange argument). Ties go to the lowest slot. O((B + amount) log B).
    """
    counts = np.zeros(len(space), dtype=np.int64)
    limits = space.tolist()
    heap = [(-round(gain(slot, 0), DIGITS), slot) for slot in slots if limits[slot] > 0]
    heapify(heap)
    for _ in range(amount):
        if not heap:
            break
        slot = heap[0][1]
        counts[slot] += 1
        given = int(counts[slot])
        # A full prompt leaves the race at the bottom of the heap instead of through a second code path.
        heapreplace(heap, (-round(gain(slot, given), DIGITS) if given < limits[slot] else np.inf, slot))
        if heap[0][0] == np.inf:
            break
    return counts
