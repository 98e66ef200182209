"""Filling a wave from an exact table, with rollouts still running.

What a wave k (with the rollouts already running) is worth is the value expected once all of it has come back:

    E[ V(s + S, f + k - S) ],   S_i ~ BetaBinomial(k_i, a + s_i, b + f_i) independent

Rollouts are handed out one at a time, each where this is largest; repeating the one-at-a-time choice without it would
send a whole wave to one prompt. Then single rollouts are exchanged while that helps: early picks counted on a budget
that could still react, which the rest of the wave has spent.
"""

from __future__ import annotations

import numpy as np

from rollwise.solver.jit import compile_kernel
from rollwise.solver.states import StateSpace, rank_state, sort_falling
from rollwise.types import FloatArray, IntArray


def fill_waves(
    space: StateSpace,
    values: FloatArray,
    prior: tuple[float, float],
    successes: IntArray,
    failures: IntArray,
    pending: IntArray,
    room: IntArray,
    paid: IntArray,
    share: IntArray,
) -> IntArray:
    """[K, B] rollouts to start in K blocks, `share` [K] each; ties go to fewest paid, then the lowest slot.

    Blocks in equal situations are decided once: at the start of a step all of them are.
    """
    rows = np.concatenate([successes, failures, pending, room, paid, share[:, None]], axis=1)
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    s, f, k, free, counted, give = np.split(distinct, np.arange(1, 6) * space.prompts, axis=1)
    blocks = [np.ascontiguousarray(block) for block in (s, f, k, free, counted)]
    given = _fill(
        space.counts,
        space.type_n,
        space.type_of,
        space.offsets,
        values,
        *prior,
        *blocks,
        np.ascontiguousarray(give[:, 0]),
    )
    return given[inverse.reshape(-1)]


@compile_kernel
def _fill(counts, type_n, type_of, offsets, values, a, b, s, f, k, room, paid, share):  # type: ignore[no-untyped-def]
    given = np.zeros_like(s)
    prompts = s.shape[1]
    hopes = np.empty(prompts)
    for row in range(s.shape[0]):
        running = k[row].copy()
        for _ in range(share[row]):
            best = -np.inf
            for i in range(prompts):
                hopes[i] = -np.inf
                if given[row, i] >= room[row, i]:
                    continue
                for j in range(i):
                    # A prompt in the very situation of an earlier one is worth the same.
                    same = s[row, j] == s[row, i] and f[row, j] == f[row, i] and running[j] == running[i]
                    if same and hopes[j] > -np.inf:
                        hopes[i] = hopes[j]
                        break
                if hopes[i] == -np.inf:
                    running[i] += 1
                    hopes[i] = _expect(counts, type_n, type_of, offsets, values, a, b, s[row], f[row], running)
                    running[i] -= 1
                best = max(best, hopes[i])
            chosen, fewest = -1, np.int64(1 << 62)
            for i in range(prompts):
                if hopes[i] > -np.inf and hopes[i] >= best - 1e-12 and paid[row, i] + given[row, i] < fewest:
                    chosen, fewest = i, paid[row, i] + given[row, i]
            given[row, chosen] += 1
            running[chosen] += 1
        if share[row] > 1:
            _exchange(counts, type_n, type_of, offsets, values, a, b, s[row], f[row], running, room[row], given[row])
    return given


@compile_kernel
def _exchange(counts, type_n, type_of, offsets, values, a, b, s, f, running, room, given):  # type: ignore[no-untyped-def]
    """Move single rollouts between prompts, the best move first, until none gains."""
    prompts = s.size
    best = _expect(counts, type_n, type_of, offsets, values, a, b, s, f, running)
    while True:
        giver, taker = -1, -1
        for i in range(prompts):
            for j in range(prompts):
                if i == j or given[i] == 0 or given[j] >= room[j]:
                    continue
                running[i] -= 1
                running[j] += 1
                hope = _expect(counts, type_n, type_of, offsets, values, a, b, s, f, running)
                running[i] += 1
                running[j] -= 1
                if hope > best + 1e-12:
                    best, giver, taker = hope, i, j
        if giver < 0:
            return
        running[giver] -= 1
        running[taker] += 1
        given[giver] -= 1
        given[taker] += 1


@compile_kernel
def _expect(counts, type_n, type_of, offsets, values, a, b, s, f, running):  # type: ignore[no-untyped-def]
    """E[V] over the joint outcomes of all running rollouts."""
    prompts = s.size
    weight = np.empty((prompts, running.max() + 1))
    total = 0
    for i in range(prompts):
        n = running[i]
        total += s[i] + f[i] + n
        weight[i, 0] = 1.0
        for j in range(n):
            weight[i, 0] *= (b + f[i] + j) / (a + b + s[i] + f[i] + j)
        for j in range(n):
            ratio = (a + s[i] + j) / (b + f[i] + n - j - 1)
            weight[i, j + 1] = weight[i, j] * ratio * (n - j) / (j + 1)
    layer = values[offsets[total] : offsets[total + 1]]
    outcome = np.zeros(prompts, dtype=np.int64)
    types = np.empty(prompts, dtype=np.int32)
    expected = 0.0
    while True:
        chance = 1.0
        for i in range(prompts):
            chance *= weight[i, outcome[i]]
            types[i] = type_of[s[i] + outcome[i], f[i] + running[i] - outcome[i]]
        sort_falling(types)
        expected += chance * layer[rank_state(counts, type_n, types, total)]
        place = 0
        while place < prompts and outcome[place] == running[place]:
            outcome[place] = 0
            place += 1
        if place == prompts:
            return expected
        outcome[place] += 1
