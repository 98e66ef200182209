"""Belief states of a step in canonical form, and their perfect rank.

A prompt's *type* is its pair (s, f), folded to s <= f where utility and prior do not tell success from failure.
Prompts that share a prior are exchangeable, so a state is a multiset of B types: written in falling order, ranked by
the combinatorial number system. With C[k, r, j] = number of multisets of k types below j with r rollouts in all,

    rank(j_1 >= ... >= j_B) = sum_q C[B-q+1, r_q, j_q],     r_q = rollouts of j_q, ..., j_B

is a bijection onto 0 .. C[B, t, T]-1 in the layer of t rollouts: no hashing, no search.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from rollwise.solver.jit import compile_kernel
from rollwise.types import FloatArray, IntArray

TypeArray = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class StateSpace:
    """All canonical states of `prompts` prompts with up to `budget` rollouts, at most `cap` on one prompt.

    Types (T of them) are ordered by n, then s. `succeed` and `fail` lead from a type to the next, -1 at the cap.
    `offsets` [budget+2] delimits the layers t = 0..budget in any flat array over states.
    """

    prompts: int
    budget: int
    cap: int
    folded: bool
    type_s: TypeArray
    type_f: TypeArray
    type_of: TypeArray
    """[cap+1, cap+1] over (s, f); -1 where s + f > cap."""
    first: TypeArray
    """[cap+2] first type with n rollouts."""
    succeed: TypeArray
    fail: TypeArray
    counts: IntArray
    """C above, [prompts+1, budget+1, T+1]."""
    offsets: IntArray

    @property
    def size(self) -> int:
        """Canonical states, all layers."""
        return int(self.offsets[-1])

    @property
    def type_n(self) -> TypeArray:
        """[T] rollouts of each type."""
        return self.type_s + self.type_f

    def means(self, prior: tuple[float, float]) -> FloatArray:
        """[T] posterior mean of a type, (a + s)/(a + b + n)."""
        a, b = prior
        return (a + self.type_s) / (a + b + self.type_n)


@lru_cache(maxsize=32)
def build_space(prompts: int, budget: int, cap: int, folded: bool) -> StateSpace:
    """The state space; `cap * prompts >= budget` is the caller's to check."""
    cap = min(cap, budget)
    pairs = [(s, n - s) for n in range(cap + 1) for s in range(n // 2 + 1 if folded else n + 1)]
    type_s, type_f = (np.array(column, dtype=np.int32) for column in zip(*pairs))
    type_of = np.full((cap + 1, cap + 1), -1, dtype=np.int32)
    type_of[type_s, type_f] = np.arange(len(pairs), dtype=np.int32)
    if folded:
        type_of[type_f, type_s] = type_of[type_s, type_f]
    type_n = type_s + type_f
    first = np.searchsorted(type_n, np.arange(cap + 2)).astype(np.int32)
    last = type_n == cap
    succeed = np.where(last, -1, type_of[np.minimum(type_s + 1, cap), type_f]).astype(np.int32)
    fail = np.where(last, -1, type_of[type_s, np.minimum(type_f + 1, cap)]).astype(np.int32)
    counts = _count_multisets(prompts, budget, type_n)
    offsets = np.concatenate([[0], np.cumsum(counts[prompts, :, -1])]).astype(np.int64)
    return StateSpace(prompts, budget, cap, folded, type_s, type_f, type_of, first, succeed, fail, counts, offsets)


@lru_cache(maxsize=256)
def count_states(prompts: int, budget: int, cap: int, folded: bool, at_most: float = float("inf")) -> float:
    """Canonical states of all layers, without building them; stops at the first count found above `at_most`."""
    if at_most < float("inf") and budget > 1:
        # Half the budget has fewer, so a hopeless one is known before an array of its length is made.
        fewer = count_states(prompts, budget // 2, cap, folded, at_most)
        if fewer > at_most:
            return fewer
    ceiling = 1e60
    ways = np.zeros((prompts + 1, budget + 1))
    ways[:, 0] = 1.0
    for n in range(1, min(cap, budget) + 1):
        types = n // 2 + 1 if folded else n + 1
        grown = ways.copy()
        for k in range(1, min(prompts, budget // n) + 1):
            grown[k:, k * n :] += min(comb(types + k - 1, k), ceiling) * ways[: prompts + 1 - k, : budget + 1 - k * n]
        ways = np.minimum(grown, ceiling)
        if ways[prompts].sum() > at_most:
            break
    return float(ways[prompts].sum())


@compile_kernel
def _count_multisets(prompts: int, budget: int, type_n: TypeArray) -> IntArray:
    size = type_n.size
    counts = np.zeros((prompts + 1, budget + 1, size + 1), dtype=np.int64)
    counts[0, 0, :] = 1
    for k in range(1, prompts + 1):
        for r in range(budget + 1):
            for j in range(size):
                with_j = counts[k - 1, r - type_n[j], j + 1] if type_n[j] <= r else 0
                counts[k, r, j + 1] = counts[k, r, j] + with_j
    return counts


@compile_kernel
def rank_state(counts: IntArray, type_n: TypeArray, types: TypeArray, total: int) -> int:
    """Rank within layer `total` of B types in falling order."""
    prompts = types.size
    rank = 0
    for q in range(prompts):
        rank += counts[prompts - q, total, types[q]]
        total -= type_n[types[q]]
    return rank


@compile_kernel
def unrank_state(
    counts: IntArray, type_n: TypeArray, first: TypeArray, rank: int, total: int, types: TypeArray
) -> None:
    """Write into `types` [B] the state of that rank in layer `total`: the inverse of `rank_state`."""
    prompts = types.size
    for q in range(prompts - 1):
        row = counts[prompts - q, total]
        low, high = 0, first[min(total, first.size - 2) + 1]
        while high - low > 1:
            middle = (low + high) // 2
            if row[middle] <= rank:
                low = middle
            else:
                high = middle
        types[q] = low
        rank -= row[low]
        total -= type_n[low]
    types[prompts - 1] = first[total] + rank


@compile_kernel
def sort_falling(types: TypeArray) -> None:
    """Insertion sort in place; B is small."""
    for i in range(1, types.size):
        item, j = types[i], i
        while j > 0 and types[j - 1] < item:
            types[j] = types[j - 1]
            j -= 1
        types[j] = item
