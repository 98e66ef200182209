"""The wave recursion for prompts side by side, as sums alone.

Every state (j successes of m) is weighed by the chance pi_m(j) of one path to it, V = pi W. One outcome back is then

    pi_m(j) W(m, j) = V(m+1, j+1) + V(m+1, j),     pi_m(j) = (alpha)_j (beta)_{m-j} / (alpha + beta)_m

and a maximum over waves stays one, since all its sides carry the same pi. Rows are scaled by 2^(m/2), so that neither pi
nor the number of paths leaves the range of a float up to `DEEPEST` outcomes. Where h has reached its largest for good
(`prompts.settled`) it is taken as 0, the difference given back at the end, and such states are left out. Kernels only.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np

from rollwise.solver.jit import compile_kernel, larger
from rollwise.types import FloatArray

LANES = 8
"""Prompts per sweep, so that every loop runs over neighbouring numbers."""

DEEPEST = 1900
"""Outcomes ahead up to which scaled chances are floats."""

NEVER = -1e30
"""Worth of what the cap forbids."""


@lru_cache(maxsize=64)
def count_paths(depths: tuple[int, ...]) -> FloatArray:
    """[K, depths[-1]+1] number of paths C(m, j) to the states of each depth m, scaled by 2^-(m/2)."""
    paths = np.zeros((len(depths), depths[-1] + 1))
    for row, m in zip(paths, depths):
        row[: m + 1] = [comb(m, j) / (1 << m // 2) for j in range(m + 1)]
    paths.flags.writeable = False
    return paths


@compile_kernel
def value_all(  # type: ignore[no-untyped-def]
    alpha, beta, s, f, room, dear, cheap, table, live, best,
    pending, terms, sizes, paths, waves, places, lam, track, worth, expected,
):  # fmt: skip
    """Write the priced worth [P, K] and the expected spend of every size into the rows `places` of both."""
    depths = pending + sizes
    starts = np.zeros(sizes.size + 1, dtype=np.int64)
    starts[1:] = np.cumsum((depths + 1) * LANES)
    top, states = depths[-1], starts[-1]
    # Rows of W, of one more rollout's cost and of the spend, one after the other, all times pi.
    now, costs, spent = np.empty(states), np.empty(states), np.zeros(states if track else 0)
    # What a sweep reads beyond its row must be numbers.
    ahead, ahead_spent = np.zeros((top + 6) * LANES), np.zeros((top + 6) * LANES)
    risen, fallen, chance = np.empty((top + 1) * LANES), np.empty((top + 1) * LANES), np.empty((top + 1) * LANES)
    halves = 0.5 ** np.arange(top // 2 + 1)
    lane, ends = np.empty(LANES, dtype=np.int64), np.empty(sizes.size, dtype=np.int64)
    for start in range(0, alpha.size, LANES):
        deepest = most = 0
        for x in range(LANES):
            lane[x] = min(start + x, alpha.size - 1)
            most = max(most, live[lane[x]])
            deepest = max(deepest, room[lane[x]])
        count = 1
        while count < sizes.size and sizes[count] <= deepest:
            count += 1
        if lam < 0.0:
            most = top + 1
        for level in range(count):
            ends[level] = starts[level] + min(depths[level] + 1, most) * LANES
        _fill(
            alpha, beta, s, f, room, dear, cheap, table, best, lane, terms, sizes, depths, starts, ends, count,
            risen, fallen, chance, now, costs,
        )  # fmt: skip
        if track:
            spent[: starts[count]] = 0.0
        for done in range(min(waves, count) - 1):
            later_spends = track and done > 0
            _step_back(
                depths, starts, ends, count, costs, lam, track, later_spends, halves, now, spent, ahead, ahead_spent, most
            )  # fmt: skip
        for level in range(count):
            row = slice(starts[level], ends[level])
            _expect(now[row], paths[level], ahead)
            ahead_spent[:LANES] = 0.0
            if track:
                _expect(spent[row], paths[level], ahead_spent)
            for x in range(min(LANES, alpha.size - start)):
                p = start + x
                if sizes[level] <= room[p]:
                    cost = sizes[level] * (cheap[p] + alpha[p] / (alpha[p] + beta[p]) * (dear[p] - cheap[p]))
                    worth[places[p], level] = best[p] + ahead[x] - lam * cost
                    expected[places[p], level] = ahead_spent[x] + cost


@compile_kernel
def _fill(  # type: ignore[no-untyped-def]
    alpha, beta, s, f, room, dear, cheap, table, best, lane, terms, sizes, depths, starts, ends, count,
    risen, fallen, chance, now, costs,
):  # fmt: skip
    """pi times h, and pi times the expected cost of one more rollout, of every state a wave may end in."""
    top = depths[count - 1]
    norm, rate = np.ones(LANES), np.empty(LANES)
    up, down, shift = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    place = np.empty(LANES, dtype=np.int64)
    values = terms.reshape(-1)
    flat = True
    for x in range(LANES):
        p = lane[x]
        up[x], down[x], shift[x] = alpha[p], beta[p], best[p]
        # Keeps rising factorials and their quotients floats, whatever the belief; the same whoever is beside.
        rate[x] = 1.0 / (alpha[p] + beta[p] + depths[-1] / np.e)
        flat = flat and dear[p] == 1.0 and cheap[p] == 1.0
    risen[:LANES] = 1.0
    fallen[top * LANES : (top + 1) * LANES] = 1.0
    for j in range(top):
        here, back = j * LANES, (top - j) * LANES
        for x in range(LANES):
            risen[here + LANES + x] = risen[here + x] * ((up[x] + j) * rate[x])
            fallen[back - LANES + x] = fallen[back + x] * ((down[x] + j) * rate[x])
    m = 0
    for level in range(count):
        while m < depths[level]:
            double = 2.0 if m % 2 == 1 else 1.0
            for x in range(LANES):
                norm[x] *= double / ((up[x] + down[x] + m) * rate[x])
            m += 1
        first, last = starts[level], ends[level]
        _spread(risen, fallen[(top - m) * LANES :], norm, chance, costs[first:last])
        for x in range(LANES):
            p = lane[x]
            place[x] = 0
            if sizes[level] <= room[p]:
                place[x] = (table[p] * terms.shape[1] + s[p] + f[p] + m) * terms.shape[2] + s[p]
        _weigh(costs[first:last], values, place, shift, now[first:last])
        for x in range(LANES):
            p = lane[x]
            if sizes[level] > room[p]:
                for y in range(first + x, last, LANES):
                    now[y] = costs[y] * NEVER
            if not flat:
                for j in range((last - first) // LANES):
                    mu = (up[x] + j) / (up[x] + down[x] + m)
                    costs[first + j * LANES + x] *= cheap[p] + mu * (dear[p] - cheap[p])


@compile_kernel
def _spread(risen, fallen, norm, chance, row):  # type: ignore[no-untyped-def]
    """Write pi of every state into a row."""
    chance[:LANES] = norm
    for y in range(LANES, row.size):
        chance[y] = chance[y - LANES]
    for y in range(row.size):
        row[y] = risen[y] * fallen[y] * chance[y]


@compile_kernel
def _weigh(chances, values, place, shift, row):  # type: ignore[no-untyped-def]
    """Chances times h - shift, each lane's h from its own place in the flat table on."""
    for j in range(row.size // LANES):
        for x in range(LANES):
            row[j * LANES + x] = chances[j * LANES + x] * (values[place[x] + j] - shift[x])


@compile_kernel
def _expect(row, paths, found):  # type: ignore[no-untyped-def]
    """Write into found[:LANES] the expectation of a row from where nothing has come back."""
    total = np.zeros(LANES)
    for j in range(row.size // LANES):
        for x in range(LANES):
            total[x] += paths[j] * row[j * LANES + x]
    found[:LANES] = total


@compile_kernel
def _step_back(  # type: ignore[no-untyped-def]
    depths, starts, ends, count, costs, lam, track, later_spends, halves, now, spent, ahead, ahead_spent, most
):
    """Raise `now` from W_{r-1} to W_r, in place: a row is read before anything raises it."""
    for source in range(1, count):
        m = depths[source]
        _read(now[starts[source] : ends[source]], ahead, m)
        if later_spends:
            _read(spent[starts[source] : ends[source]], ahead_spent, m)
        for target in range(source - 1, -1, -1):
            n = depths[target]
            _sweep(ahead, depths[target + 1], n, most)
            if later_spends:
                _sweep(ahead_spent, depths[target + 1], n, most)
            scale = halves[m // 2 - n // 2]
            low, high = starts[target], ends[target]
            if not track:
                _raise(low, high, now, ahead, costs, scale, lam * (m - n))
            elif later_spends:
                _raise_both(low, high, now, ahead, costs, spent, ahead_spent, scale, lam, m - n)
            else:
                _raise_first(low, high, now, ahead, costs, spent, scale, lam, m - n)


@compile_kernel
def _read(row, ahead, m):  # type: ignore[no-untyped-def]
    ahead[: row.size] = row
    if row.size < (m + 1) * LANES:
        # Beyond the states that are live lie settled ones, worth 0.
        for y in range(row.size, min(row.size + 6 * LANES, ahead.size)):
            ahead[y] = 0.0


@compile_kernel
def _sweep(row, m, n, most):  # type: ignore[no-untyped-def]
    """Take a row over m outcomes back to one over n, in place, four outcomes at a time.

    The first `most` states alone are live; an even number of states is swept, so that loops have no remainder.
    """
    i = m
    while i - 4 >= n:
        for y in range((min(i - 3, most) + 1) // 2 * (2 * LANES)):
            ends, inner = row[y] + row[y + 4 * LANES], row[y + LANES] + row[y + 3 * LANES]
            row[y] = ends + 4.0 * inner + 6.0 * row[y + 2 * LANES]
        i -= 4
    if i - 2 >= n:
        for y in range((min(i - 1, most) + 1) // 2 * (2 * LANES)):
            row[y] = (row[y] + row[y + LANES]) + (row[y + LANES] + row[y + 2 * LANES])
        i -= 2
    if i > n:
        for y in range((min(i, most) + 1) // 2 * (2 * LANES)):
            row[y] = row[y] + row[y + LANES]


@compile_kernel
def _raise(low, high, now, ahead, costs, scale, charge):  # type: ignore[no-untyped-def]
    """Take the wave where it is worth more than the best so far."""
    row, cost = now[low:high], costs[low:high]
    for y in range(row.size):
        row[y] = larger(ahead[y] * scale - charge * cost[y], row[y])


@compile_kernel
def _raise_first(low, high, now, ahead, costs, spent, scale, lam, k):  # type: ignore[no-untyped-def]
    """`_raise` with the spend of the last wave."""
    row, cost, paid = now[low:high], costs[low:high], spent[low:high]
    for y in range(row.size):
        hope, old, was = ahead[y] * scale - lam * k * cost[y], row[y], paid[y]
        row[y] = larger(hope, old)
        paid[y] = k * cost[y] if hope > old else was


@compile_kernel
def _raise_both(low, high, now, ahead, costs, spent, ahead_spent, scale, lam, k):  # type: ignore[no-untyped-def]
    """`_raise` with the spend of this wave and of those after it."""
    row, cost, paid = now[low:high], costs[low:high], spent[low:high]
    for y in range(row.size):
        hope, old, was = ahead[y] * scale - lam * k * cost[y], row[y], paid[y]
        row[y] = larger(hope, old)
        paid[y] = ahead_spent[y] * scale + k * cost[y] if hope > old else was
