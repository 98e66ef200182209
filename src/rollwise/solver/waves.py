"""Waves: the best play when rollouts are started together and only R decisions are left.

    W_r(s, f) = max over k >= 0 of  -lam c k + sum_j BetaBin(j; k, alpha, beta) W_{r-1}(s+j, f+k-j),     W_0 = h

and as for prices  min over lam of  sum_i W_R,i + lam N  bounds every policy of R waves within the caps. The sum over j
is never formed: sweeping one outcome back at a time, Q <- mu Q(s+1, f) + (1-mu) Q(s, f+1), gives it for every k on the
way, in n^3/6 steps for all states of up to n outcomes (`sweeps`). Rollouts still running come back together with the k.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from rollwise.solver.dual import Price, find_price
from rollwise.solver.jit import compile_kernel, thread_count
from rollwise.solver.prices import Bound, check_room, check_sum, price_range
from rollwise.solver.prompts import PromptStates, Terms, settled, terms_by_total
from rollwise.solver.sweeps import DEEPEST, LANES, NEVER, count_paths, value_all
from rollwise.types import FloatArray, IntArray, RollwiseError

_PER_THREAD = 1024
"""Prompts below which a thread costs more than it saves."""
_MOST_THREADS = 4


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
        # Waiting is worth no less while waves are left over, but what a wave teaches comes sooner without it.
        return _choose(self.worth)


def wave_bound(utility: Terms, prompts: PromptStates, budget: float, waves: int, *, at_most: bool = False) -> Bound:
    """Upper bound on E[sum_i h_i] of every policy that decides at most `waves` more times; see `price_bound`."""
    check_sum(utility)
    check_room(prompts, budget, at_most)
    terms = terms_by_total(utility, prompts.top)
    first, _, counts = prompts.grouped()
    groups = prompts.take(first)
    steepest = price_range(terms, prompts)
    sizes = np.arange(int(groups.room.max()) + 1)
    problem = WaveProblem(groups, terms, sizes, waves)
    found = price_waves(problem, counts, float(budget), 0.0 if at_most else -steepest, steepest)
    return Bound(found.value, found.price, found.spend, prompts.top, found.floor)


def price_waves(
    problem: WaveProblem,
    weights: FloatArray | IntArray,
    budget: float,
    lowest: float,
    highest: float,
    *,
    tolerance: float = 1e-10,
    slack: float = 0.0,
    tries: int = 80,
    start: float = 0.0,
    factor: float = 4.0,
) -> Price:
    """The price at which play over `waves` waves is expected to spend `budget`; prompt i counts `weights[i]` times.

    `tolerance`, `slack`, `tries`, `start` and `factor` shorten the search, as in `find_price`.
    """

    def evaluate(lam: float) -> tuple[float, float]:
        wave = problem.value(lam)
        return _total(wave.worth, wave.spend, weights)

    search = {"tolerance": tolerance, "slack": slack, "tries": tries, "start": start, "factor": factor}
    return find_price(evaluate, budget, lowest, highest, **search)  # type: ignore[arg-type]


def value_waves(
    prompts: PromptStates, terms: FloatArray, sizes: IntArray, waves: int, lam: float, *, spend: bool = True
) -> FirstWave:
    """`WaveProblem.value` at a single price."""
    return WaveProblem(prompts, terms, sizes, waves).value(lam, spend=spend)


class WaveProblem:
    """What the next waves of P prompts are worth at any price; what does not depend on the price is arranged once.

    Args:
        terms: h over (n, s), from `terms_by_total`.
        sizes: [K] rising from 0; rollouts of one prompt in this and all later waves together are one of these.
        waves: decisions left, the next one included.

    Raises:
        RollwiseError: a prompt may end with more than `sweeps.DEEPEST` outcomes to come.
    """

    def __init__(self, prompts: PromptStates, terms: FloatArray, sizes: IntArray, waves: int) -> None:
        deepest = int(prompts.pending.max(initial=0) + sizes[-1])
        if deepest > DEEPEST:
            raise RollwiseError(f"max_per_prompt: waves reach to {DEEPEST} rollouts a prompt; lower it from {deepest}")
        self._shape, self._sizes, self._waves = (prompts.size, sizes.size), sizes, waves
        since, largest = settled(terms)
        columns = (
            prompts.a + prompts.successes,
            prompts.b + prompts.failures,
            prompts.successes,
            prompts.failures,
            prompts.room,
            prompts.cost_success,
            prompts.cost_failure,
            prompts.table,
            np.maximum(since[prompts.table] - prompts.successes, 0),
            largest[prompts.table],
        )
        self._tasks = []
        for pending in np.unique(prompts.pending).tolist() if prompts.pending.any() else [0]:
            members = np.flatnonzero(prompts.pending == pending)
            # Prompts with little room need few sizes: lanes of like depth waste none.
            members = members[np.argsort(prompts.room[members], kind="stable")]
            parts = min(thread_count(), _MOST_THREADS, members.size // _PER_THREAD) or 1
            paths = count_paths(tuple((pending + sizes).tolist()))
            lanes = np.arange(members.size) // LANES % parts
            for part in range(parts):
                # Neighbours differ in depth, so every thread gets its share of the deep ones.
                some = members[lanes == part]
                self._tasks.append((*(x[some] for x in columns), pending, terms, sizes, paths, waves, some))

    @property
    def size(self) -> int:
        """P."""
        return self._shape[0]

    def value(self, lam: float, *, spend: bool = True) -> FirstWave:
        """Priced worth of every size of the next wave; `spend=False` leaves the spend at its own cost, for less time."""
        worth, expected = np.full(self._shape, NEVER), np.zeros(self._shape)

        def run(task: tuple) -> None:
            value_all(*task, lam, spend, worth, expected)

        if len(self._tasks) == 1 or self.size < 2 * _PER_THREAD:
            for task in self._tasks:
                run(task)
        else:
            with ThreadPoolExecutor(min(thread_count(), _MOST_THREADS)) as pool:
                list(pool.map(run, self._tasks))
        return FirstWave(self._sizes, worth, expected)


@compile_kernel
def _total(worth, spend, weights):  # type: ignore[no-untyped-def]
    """Weighted sums of what the chosen waves are worth, and of what they are expected to spend."""
    chosen, hope, paid = _choose(worth), 0.0, 0.0
    for p in range(weights.size):
        hope += weights[p] * worth[p, chosen[p]]
        paid += weights[p] * spend[p, chosen[p]]
    return hope, paid


@compile_kernel
def _choose(worth):  # type: ignore[no-untyped-def]
    chosen = np.zeros(worth.shape[0], dtype=np.int64)
    for p in range(worth.shape[0]):
        most = worth[p].max() - 1e-12
        for k in range(1, worth.shape[1]):
            if worth[p, k] >= most:
                chosen[p] = k
                break
    return chosen
