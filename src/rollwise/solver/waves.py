"""Waves: the best play when rollouts are started together and only R decisions are left.

    W_r(s, f) = max over k >= 0 of  -lam c k + sum_j BetaBin(j; k, alpha, beta) W_{r-1}(s+j, f+k-j),     W_0 = h

and as for prices  min over lam of  sum_i W_R,i + lam N  bounds every policy of R waves within the caps. The sum over j
is never formed: sweeping one outcome back at a time, Q <- mu Q(s+1, f) + (1-mu) Q(s, f+1), gives it for every k on the
way, in n^3/6 steps for all states of up to n outcomes. Rollouts still running come back together with the k.

A sweep handles `LANES` prompts side by side, so that every loop runs over neighbouring numbers.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from rollwise.solver.dual import Price, find_price
from rollwise.solver.jit import compile_kernel, larger, thread_count
from rollwise.solver.prices import Bound, check_room, check_sum, price_range
from rollwise.solver.prompts import PromptStates, Terms, terms_by_total
from rollwise.types import FloatArray, IntArray

LANES = 8
"""Prompts per sweep."""

_PER_THREAD = 128
_MOST_THREADS = 4

_NEVER = -1e30
"""Worth of what the cap forbids."""


@dataclass(frozen=True)
class FirstWave:
    """What each prompt's next wave is worth at one price; K wave sizes were tried.

    `worth` [P, K] is the priced worth -lam c k + E[W_{R-1}], `spend` [P, K] the expected spend, this wave included.
    """

    sizes: IntArray
    """[K] numbers of new rollouts, rising from 0."""
    worth: FloatArray
    spend: FloatArray

    def best(self) -> IntArray:
        """(P,) place in `sizes` of the best one; of ties within 1e-12 the smallest, waiting (0) last of all."""
        tied = self.worth >= self.worth.max(axis=1, keepdims=True) - 1e-12
        # Waiting is worth no less while waves are left over, but what a wave teaches comes sooner without it.
        tied = np.roll(tied, -1, axis=1)
        return (np.argmax(tied, axis=1) + 1) % self.sizes.size


def wave_bound(utility: Terms, prompts: PromptStates, budget: float, waves: int, *, at_most: bool = False) -> Bound:
    """Upper bound on E[sum_i h_i] of every policy that decides at most `waves` more times; see `price_bound`."""
    check_sum(utility)
    check_room(prompts, budget, at_most)
    terms = terms_by_total(utility, prompts.top)
    first, _, counts = prompts.grouped()
    groups = prompts.take(first)
    steepest = price_range(terms, prompts)
    sizes = np.arange(int(groups.room.max()) + 1)
    found = price_waves(groups, counts, terms, sizes, waves, float(budget), 0.0 if at_most else -steepest, steepest)
    return Bound(found.value, found.price, found.spend, prompts.top, found.floor)


def price_waves(
    prompts: PromptStates,
    weights: FloatArray | IntArray,
    terms: FloatArray,
    sizes: IntArray,
    waves: int,
    budget: float,
    lowest: float,
    highest: float,
    *,
    tolerance: float = 1e-10,
    slack: float = 0.0,
    tries: int = 80,
    start: float = 0.0,
) -> Price:
    """The price at which play over `waves` waves is expected to spend `budget`; prompt i counts `weights[i]` times.

    `tolerance`, `slack`, `tries` and `start` shorten the search, as in `find_price`.
    """

    def evaluate(lam: float) -> tuple[float, float]:
        wave = value_waves(prompts, terms, sizes, waves, lam)
        rows, best = np.arange(prompts.size), wave.best()
        return float(weights @ wave.worth[rows, best]), float(weights @ wave.spend[rows, best])

    return find_price(evaluate, budget, lowest, highest, tolerance=tolerance, slack=slack, tries=tries, start=start)


def value_waves(
    prompts: PromptStates, terms: FloatArray, sizes: IntArray, waves: int, lam: float, *, spend: bool = True
) -> FirstWave:
    """Priced worth of every size of the next wave, `waves` decisions left, this one included.

    Args:
        terms: h over (n, s), from `terms_by_total`.
        sizes: [K] rising from 0; rollouts of one prompt in this and all later waves together are one of these.
        spend: False leaves `FirstWave.spend` at this wave's own cost, for half the time.
    """
    worth = np.full((prompts.size, sizes.size), _NEVER)
    expected = np.zeros((prompts.size, sizes.size))
    columns = (
        prompts.a + prompts.successes,
        prompts.b + prompts.failures,
        prompts.successes,
        prompts.failures,
        prompts.room,
        prompts.cost_success,
        prompts.cost_failure,
        prompts.table,
    )
    tasks = []
    for pending in np.unique(prompts.pending):
        members = np.flatnonzero(prompts.pending == pending)
        # Prompts with little room need few sizes: lanes of like depth waste none.
        members = members[np.argsort(prompts.room[members], kind="stable")]
        parts = min(thread_count(), _MOST_THREADS, members.size // _PER_THREAD) or 1
        # Neighbours differ in depth, so every thread gets its share of the deep ones.
        tasks += [
            (int(pending), np.concatenate(np.array_split(members, -(-members.size // LANES))[part::parts]))
            for part in range(parts)
        ]

    def run(task: tuple[int, IntArray]) -> None:
        pending, members = task
        some = [column[members] for column in columns]
        _value_all(*some, pending, terms, sizes, waves, lam, spend, members, worth, expected)

    if len(tasks) == 1 or prompts.size < 2 * _PER_THREAD:
        for task in tasks:
            run(task)
    else:
        with ThreadPoolExecutor(min(thread_count(), _MOST_THREADS)) as pool:
            list(pool.map(run, tasks))
    return FirstWave(sizes, worth, expected)


@compile_kernel
def _value_all(  # type: ignore[no-untyped-def]
    alpha, beta, s, f, room, dear, cheap, table, pending, terms, sizes, waves, lam, track, places, worth, expected
):
    top = pending + sizes[-1]
    width = (top + 2) * LANES
    shape = (sizes.size, width)
    now, later, costs = np.empty(shape), np.empty(shape), np.empty(shape)
    spent, spent_later = np.zeros(shape), np.zeros(shape)
    means = np.empty((top + 1) * (top + 2) // 2 * LANES)
    swept, swept_spent = np.empty(width), np.empty(width)
    lane = np.empty(LANES, dtype=np.int64)
    for start in range(0, alpha.size, LANES):
        deepest = 0
        for x in range(LANES):
            lane[x] = min(start + x, alpha.size - 1)
            deepest = max(deepest, room[lane[x]])
        count = 1
        while count < sizes.size and sizes[count] <= deepest:
            count += 1
        _fill_means(alpha, beta, lane, pending + sizes[count - 1], means)
        _fill_terms(s, f, dear, cheap, table, pending, room, lane, terms, sizes, count, means, now, costs)
        for level in range(count):
            spent[level, :] = 0.0
        for _ in range(waves - 1):
            for level in range(count):
                for y in range((pending + sizes[level] + 1) * LANES):
                    later[level, y] = now[level, y]
                if track:
                    for y in range((pending + sizes[level] + 1) * LANES):
                        spent_later[level, y] = spent[level, y]
            _step_back(
                means, pending, sizes, count, costs, lam, track,
                later, now, spent_later, spent, swept, swept_spent,
            )  # fmt: skip
            if not _differ(now, later, pending, sizes, count):
                break
        for level in range(count):
            m = pending + sizes[level]
            _sweep(means, m, 0, now[level], swept)
            swept_spent[:LANES] = 0.0
            if track:
                _sweep(means, m, 0, spent[level], swept_spent)
            for x in range(min(LANES, alpha.size - start)):
                p = start + x
                if sizes[level] <= room[p]:
                    cost = sizes[level] * (cheap[p] + alpha[p] / (alpha[p] + beta[p]) * (dear[p] - cheap[p]))
                    worth[places[p], level] = swept[x] - lam * cost
                    expected[places[p], level] = swept_spent[x] + cost


@compile_kernel
def _sweep(means, m, last, row, swept):  # type: ignore[no-untyped-def]
    """Write into `swept` the expectation, `last` outcomes from now, of a row over m outcomes."""
    for y in range((m + 1) * LANES):
        swept[y] = row[y]
    for i in range(m - 1, last - 1, -1):
        mu = means[i * (i + 1) // 2 * LANES : (i + 1) * (i + 2) // 2 * LANES]
        for y in range((i + 1) * LANES):
            swept[y] = swept[y] + mu[y] * (swept[y + LANES] - swept[y])


@compile_kernel
def _fill_means(alpha, beta, lane, depth, means):  # type: ignore[no-untyped-def]
    width = depth * LANES
    risen, part = np.empty(width), np.empty(width)
    for j in range(depth):
        for x in range(LANES):
            risen[j * LANES + x] = alpha[lane[x]] + j
    place = 0
    for i in range(depth):
        for x in range(LANES):
            part[x] = 1.0 / (alpha[lane[x]] + beta[lane[x]] + i)
        for y in range(LANES, (i + 1) * LANES):
            part[y] = part[y - LANES]
        row = means[place : place + (i + 1) * LANES]
        for y in range((i + 1) * LANES):
            row[y] = risen[y] * part[y]
        place += (i + 1) * LANES


@compile_kernel
def _fill_terms(  # type: ignore[no-untyped-def]
    s, f, dear, cheap, table, pending, room, lane, terms, sizes, count, means, now, costs
):
    """h, and the expected cost of one more rollout, of every state a wave may end in."""
    for level in range(count):
        m = pending + sizes[level]
        for x in range(LANES):
            p = lane[x]
            if sizes[level] > room[p]:
                for j in range(m + 1):
                    now[level, j * LANES + x] = _NEVER
            else:
                for j in range(m + 1):
                    now[level, j * LANES + x] = terms[table[p], s[p] + f[p] + m, s[p] + j]
            if level + 1 < count:
                for j in range(m + 1):
                    mu = means[(m * (m + 1) // 2 + j) * LANES + x]
                    costs[level, j * LANES + x] = cheap[p] + mu * (dear[p] - cheap[p])


@compile_kernel
def _step_back(  # type: ignore[no-untyped-def]
    means, pending, sizes, count, costs, lam, track,
    later, now, spent_later, spent, swept, swept_spent,
):  # fmt: skip
    """Raise `now` from W_{r-1} to W_r; `later` holds a copy of W_{r-1}."""
    for source in range(count - 1, 0, -1):
        m = pending + sizes[source]
        target = source - 1
        for y in range((m + 1) * LANES):
            swept[y] = later[source, y]
        if track:
            for y in range((m + 1) * LANES):
                swept_spent[y] = spent_later[source, y]
        for i in range(m - 1, pending - 1, -1):
            mu = means[i * (i + 1) // 2 * LANES : (i + 1) * (i + 2) // 2 * LANES]
            for y in range((i + 1) * LANES):
                swept[y] = swept[y] + mu[y] * (swept[y + LANES] - swept[y])
            if track:
                for y in range((i + 1) * LANES):
                    swept_spent[y] = swept_spent[y] + mu[y] * (swept_spent[y + LANES] - swept_spent[y])
            if i == pending + sizes[target]:
                _raise(now[target], swept, costs[target], spent[target], swept_spent, m - i, lam, track, i + 1)
                target -= 1


@compile_kernel
def _raise(row, swept, cost, paid, swept_spent, k, lam, track, states):  # type: ignore[no-untyped-def]
    """Take the wave of k where it is worth more than the best so far."""
    charge = lam * k
    if track:
        for y in range(states * LANES):
            hope, old, was = swept[y] - charge * cost[y], row[y], paid[y]
            row[y] = larger(hope, old)
            paid[y] = swept_spent[y] + k * cost[y] if hope > old else was
    else:
        for y in range(states * LANES):
            row[y] = larger(swept[y] - charge * cost[y], row[y])


@compile_kernel
def _differ(now, later, pending, sizes, count):  # type: ignore[no-untyped-def]
    for level in range(count):
        for y in range((pending + sizes[level] + 1) * LANES):
            if now[level, y] != later[level, y]:
                return True
    return False
