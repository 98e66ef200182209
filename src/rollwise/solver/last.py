"""The last wave: everything left is started at once, so only expectations count.

    maximise  sum_i E[h_i | k_i more]   over  sum_i k_i = K,  0 <= k_i <= room_i

E[h | k] need not be concave in k (two rollouts make a variance, one does not). Steps along its concave hull, the
steepest first, are optimal wherever K ends on a corner of the hulls; where it does not, small problems are solved by an
exact knapsack recursion and large ones repaired: short of the optimum by less than the one step that did not fit.
"""

from __future__ import annotations

import numpy as np

from rollwise.solver.jit import compile_kernel
from rollwise.solver.prompts import PromptStates, Terms, own_terms, parts, settled
from rollwise.types import FloatArray, IntArray, RollwiseError

HORIZON = 64
"""Rollouts per prompt looked at, unless four times the average share is more."""

EXACT_STEPS = 4_000_000
"""Prompts * K * rollouts per prompt up to which the knapsack recursion is run."""


def fill_last(
    utility: Terms, prompts: PromptStates, share: int, paid: IntArray | None = None, *, tokens: float | None = None
) -> IntArray:
    """(P,) rollouts to start now, `share` in all: the best single wave for a sum of h(s, f).

    Args:
        paid: (P,) rollouts paid for, for ties (fewest first, then the lowest slot); default: those in the counts.
        tokens: what they may cost together in expectation (`PromptStates.cost_*`). Then `share` is the most there may
            be, and steps go by their gain per cost: those that gain nothing are not taken.

    Raises:
        RollwiseError: `share` exceeds the room.
    """
    if share > prompts.room.sum() and tokens is None:
        raise RollwiseError(f"share {share} does not fit: n_max leaves room for {prompts.room.sum()}")
    share = min(share, int(prompts.room.sum()))
    if share == 0:
        return np.zeros(prompts.size, dtype=np.int64)
    counted = prompts.successes + prompts.failures + prompts.pending if paid is None else paid
    limit = _limit(prompts, share)
    room = np.minimum(prompts.room, limit)
    first, group, _ = prompts.grouped()
    hopes = expected_terms(utility, prompts.take(first), limit)
    cost = np.ones(prompts.size) if tokens is None else prompts.expected_cost
    purse = np.inf if tokens is None else float(tokens)
    given, certain = _climb(hopes, group, room, np.ascontiguousarray(counted, dtype=np.int64), cost, share, purse)
    if tokens is None and not certain and prompts.size * share * min(limit, share) <= EXACT_STEPS:
        exact = _knapsack(hopes, group, room, share)
        if _worth(hopes, group, exact) > _worth(hopes, group, given) + 1e-12:
            return exact
    return given


def expected_terms(utility: Terms, prompts: PromptStates, limit: int) -> FloatArray:
    """[P, limit+1] E[h] once what is running and k more rollouts are back; -inf beyond the room."""
    top = int((prompts.successes + prompts.failures + prompts.pending + np.minimum(prompts.room, limit)).max())
    hopes = np.full((prompts.size, limit + 1), -np.inf)
    for part in parts(utility, prompts, top):
        some, terms = own_terms(utility, prompts.take(part), top)
        since, largest = settled(terms)
        by_successes = np.ascontiguousarray((terms - largest[:, None, None]).transpose(0, 2, 1))
        _expect(
            some.a + some.successes,
            some.b + some.failures,
            some.successes,
            some.failures,
            some.pending,
            np.minimum(some.room, limit),
            some.table,
            since,
            largest,
            by_successes,
            hopes[part],
        )
    return hopes


def _limit(prompts: PromptStates, share: int) -> int:
    limit = max(HORIZON, 4 * -(-share // prompts.size))
    while np.minimum(prompts.room, limit).sum() < share:
        limit *= 2
    return int(min(limit, share, prompts.room.max()))


def _worth(hopes: FloatArray, group: IntArray, given: IntArray) -> float:
    return float(hopes[group, given].sum())


@compile_kernel
def _expect(alpha, beta, s, f, pending, room, table, since, largest, terms, hopes):  # type: ignore[no-untyped-def]
    """BetaBin(j; m) = A_j B_{m-j} / C_m with x_t = prod (x + i)/(i + 1), so all m of one j are summed side by side."""
    top = (pending + room).max()
    fallen, found, parts = np.empty(top + 1), np.empty(top + 1), 1.0 / np.arange(1, top + 2)
    for p in range(alpha.size):
        least, most = pending[p], pending[p] + room[p]
        total, n = alpha[p] + beta[p], s[p] + f[p]
        # Any unit would do; this one keeps all three products floats for a thousand rollouts, whatever the belief.
        unit = np.exp(0.5) * (total / max(most, 1) + 1.0)
        fallen[0] = 1.0
        for t in range(most):
            fallen[t + 1] = fallen[t] * ((beta[p] + t) * parts[t] / unit)
        found[: room[p] + 1] = 0.0
        risen = 1.0
        # Where h is at its largest for good it counts as 0, and no more successes matter.
        for j in range(min(most + 1, since[table[p]] - s[p])):
            low = max(j, least)
            chances, worth = fallen[low - j : most + 1 - j], terms[table[p], s[p] + j, n + low : n + most + 1]
            _add(found[low - least :], risen, chances, worth)
            risen *= (alpha[p] + j) * parts[j] / unit
        norm = 1.0
        for m in range(most + 1):
            if m >= least:
                hopes[p, m - least] = largest[table[p]] + norm * found[m - least]
            norm *= (m + 1) * unit / (total + m)


@compile_kernel
def _add(found, share, chances, worth):  # type: ignore[no-untyped-def]
    for i in range(chances.size):
        found[i] += share * chances[i] * worth[i]


@compile_kernel
def _hull(hopes, room, ahead):  # type: ignore[no-untyped-def]
    """Write into ahead[k] the next corner of the concave hull of hopes[0..room] as seen from k."""
    ahead[room] = room
    for k in range(room - 1, -1, -1):
        corner = k + 1
        # The chain ahead is concave already: pass corners that lie below the line beyond them.
        while corner < room:
            beyond = ahead[corner]
            here = (hopes[corner] - hopes[k]) / (corner - k)
            if (hopes[beyond] - hopes[k]) / (beyond - k) <= here + 1e-12:
                break
            corner = beyond
        ahead[k] = corner


@compile_kernel
def _climb(hopes, group, room, paid, cost, share, purse):  # type: ignore[no-untyped-def]
    """Hull steps, the steepest first; (counts, whether every step fitted, which makes them optimal)."""
    size = group.size
    given = np.zeros(size, dtype=np.int64)
    ahead = np.empty((size, room.max() + 1), dtype=np.int64)
    slope = np.empty(size)
    heap = np.empty(size, dtype=np.int64)
    count = 0
    saving = purse < np.inf
    for i in range(size):
        if room[i] > 0:
            _hull(hopes[group[i]], room[i], ahead[i])
            slope[i] = _slope(hopes[group[i]], 0, ahead[i, 0]) / cost[i]
            heap[count] = i
            count += 1
    for place in range(count // 2 - 1, -1, -1):
        _sink(heap, count, place, slope, paid, given)
    left, certain = share, True
    while left > 0 and count > 0:
        i = heap[0]
        if saving and slope[i] <= 0.0:
            return given, certain
        step = ahead[i, given[i]] - given[i]
        fits = step <= left and step * cost[i] <= purse
        if fits:
            given[i] += step
            left -= step
            purse -= step * cost[i]
        if fits and given[i] < room[i]:
            slope[i] = _slope(hopes[group[i]], given[i], ahead[i, given[i]]) / cost[i]
        else:
            certain = certain and fits
            count -= 1
            heap[0] = heap[count]
        _sink(heap, count, 0, slope, paid, given)
    while left > 0:
        # No whole step fits any more: the best part of one, by its gain per cost.
        best, chosen, amount = -np.inf, -1, 0
        for i in range(size):
            row = hopes[group[i]]
            for k in range(1, min(left, room[i] - given[i]) + 1):
                gain = (row[given[i] + k] - row[given[i]]) / (k * cost[i])
                if gain > best + 1e-12 and k * cost[i] <= purse:
                    best, chosen, amount = gain, i, k
        if chosen < 0 or (saving and best <= 0.0):
            return given, certain
        given[chosen] += amount
        left -= amount
        purse -= amount * cost[chosen]
    return given, certain


@compile_kernel
def _slope(row, k, corner):  # type: ignore[no-untyped-def]
    return (row[corner] - row[k]) / (corner - k)


@compile_kernel
def _sink(heap, count, place, slope, paid, given):  # type: ignore[no-untyped-def]
    while True:
        child = 2 * place + 1
        if child >= count:
            return
        if child + 1 < count and _goes_first(heap[child + 1], heap[child], slope, paid, given):
            child += 1
        if not _goes_first(heap[child], heap[place], slope, paid, given):
            return
        heap[child], heap[place] = heap[place], heap[child]
        place = child


@compile_kernel
def _goes_first(i, j, slope, paid, given):  # type: ignore[no-untyped-def]
    if slope[i] > slope[j] + 1e-12:
        return True
    if slope[i] < slope[j] - 1e-12:
        return False
    if paid[i] + given[i] != paid[j] + given[j]:
        return paid[i] + given[i] < paid[j] + given[j]
    return i < j


@compile_kernel
def _knapsack(hopes, group, room, share):  # type: ignore[no-untyped-def]
    size = group.size
    best = np.full(share + 1, -np.inf)
    best[0] = 0.0
    taken = np.zeros((size, share + 1), dtype=np.int64)
    for i in range(size):
        row = hopes[group[i]]
        grown = np.full(share + 1, -np.inf)
        for total in range(share + 1):
            for k in range(min(room[i], total) + 1):
                worth = best[total - k] + row[k]
                if worth > grown[total] + 1e-13:
                    grown[total] = worth
                    taken[i, total] = k
        best = grown
    given = np.zeros(size, dtype=np.int64)
    total = share
    for i in range(size - 1, -1, -1):
        given[i] = taken[i, total]
        total -= given[i]
    return given
