"""Two plain ways to the table of `sum_variance`, to hold the compiled solver against; `solver.py` runs them."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb

import numpy as np


def variance(s, f):
    n = np.maximum(s + f, 1)
    return s * f / (n * n)


def by_numpy(prompts: int, budget: int) -> tuple[float, int]:
    """All ordered states of a layer as rows of 2B counts, next layers found by their rank."""
    depth, value, states = 2 * prompts, None, 0
    binomials = np.array([[comb(n, k) for k in range(depth + 1)] for n in range(budget + depth + 2)])
    for t in range(budget, -1, -1):
        rows = _layer(t, depth)
        states += len(rows)
        s, f = rows[:, ::2].astype(np.int64), rows[:, 1::2].astype(np.int64)
        if value is None:
            value = variance(s, f).sum(axis=1)
            continue
        best = np.full(len(rows), -np.inf)
        for i in range(prompts):
            mean = (1 + s[:, i]) / (2 + s[:, i] + f[:, i])
            moved = []
            for column in (2 * i, 2 * i + 1):
                rows[:, column] += 1
                moved.append(value[_rank(rows, t + 1, binomials)])
                rows[:, column] -= 1
            best = np.maximum(best, mean * moved[0] + (1 - mean) * moved[1])
        value = best
    return float(value[0]), states


def _layer(total: int, depth: int) -> np.ndarray:
    """[C(t + d - 1, d - 1), d] all counts that sum to `total`, in lexicographic order."""
    size = comb(total + depth - 1, depth - 1)
    bars = np.fromiter(
        (bar for row in combinations(range(total + depth - 1), depth - 1) for bar in row), np.int16, size * (depth - 1)
    ).reshape(size, depth - 1)
    ends = np.full((size, 1), total + depth - 1, dtype=np.int16)
    return np.diff(bars, axis=1, prepend=np.int16(-1), append=ends) - np.int16(1)


def _rank(rows: np.ndarray, total: int, binomials: np.ndarray) -> np.ndarray:
    depth = rows.shape[1]
    rank, left = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), total)
    for i in range(depth - 1):
        rest = depth - 1 - i
        rank += binomials[left + rest, rest] - binomials[left - rows[:, i] + rest, rest]
        left = left - rows[:, i]
    return rank


def by_dictionary(prompts: int, budget: int) -> tuple[float, int]:
    """The recursion as it is written, every state met kept in a dictionary."""

    @cache
    def value(state: tuple[tuple[int, int], ...], left: int) -> float:
        if left == 0:
            return sum(s * f / max(s + f, 1) ** 2 for s, f in state)
        best = 0.0
        for i, (s, f) in enumerate(state):
            mean = (1 + s) / (2 + s + f)
            up, down = (*state[:i], (s + 1, f), *state[i + 1 :]), (*state[:i], (s, f + 1), *state[i + 1 :])
            best = max(best, mean * value(up, left - 1) + (1 - mean) * value(down, left - 1))
        return best

    found = value(((0, 0),) * prompts, budget)
    return found, value.cache_info().currsize
