"""The exact optimum of a step's allocation: backward induction over canonical belief states.

    V_N(x) = U(x),   V_t(x) = max_i mu_i V_{t+1}(x + success_i) + (1 - mu_i) V_{t+1}(x + failure_i)

(arXiv 2610.37429), with mu_i = (a + s_i)/(a + b + n_i) under the shared prior Beta(a, b).
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from rollwise.solver.jit import compile_kernel, run_chunks, thread_count
from rollwise.solver.solution import Solution
from rollwise.solver.states import StateSpace, build_space, count_states, unrank_state
from rollwise.solver.uniform import uniform_value
from rollwise.types import FloatArray, RollwiseError
from rollwise.utilities import Utility, get_utility

MEMORY_LIMIT = 4 * 2**30
"""Bytes a table may take unless `solve` is told otherwise."""

MAX_PROMPTS = 64
"""Optimal choices of a state are kept as one bit per prompt."""

TOLERANCE = 1e-12
"""Choices whose values differ by less are ties: the prompt with fewest rollouts gets it, then the lowest slot."""


def solve(
    utility: str | Utility,
    prompts: int,
    budget: int,
    prior: tuple[float, float] = (1.0, 1.0),
    n_max: int | None = None,
    *,
    advantage_form: str = "raw",
    keep_values: bool = True,
    memory_limit: int = MEMORY_LIMIT,
) -> Solution:
    """Solve the allocation of `budget` rollouts over `prompts` prompts exactly.

    Args:
        utility: a name of `rollwise.utilities.UTILITIES` or a `Utility`.
        prior: (a, b) of the Beta belief every prompt starts with.
        n_max: most rollouts one prompt may get; None for no cap.
        keep_values: keep V of all layers (8 bytes a state), which `state_values` and `fill` need.
        memory_limit: bytes the table may take.

    Raises:
        RollwiseError: a bad argument, or a table above `memory_limit`.
    """
    utility = get_utility(utility, advantage_form)
    cap = check_problem(prompts, budget, prior, n_max)
    began = time.perf_counter()
    check_memory(prompts, budget, cap, True, keep_values, memory_limit)
    terms = utility.table(cap)
    folded = is_folded(terms, prior)
    check_memory(prompts, budget, cap, folded, keep_values, memory_limit)
    space = build_space(prompts, budget, cap, folded)
    values, choices = _induct(space, terms, utility.kind == "min", prior, keep_values)
    value = float(values[0])
    return Solution(
        utility=utility,
        prompts=prompts,
        budget=budget,
        prior=(float(prior[0]), float(prior[1])),
        n_max=n_max,
        space=space,
        choices=choices,
        values=values if keep_values else np.zeros(0),
        value=value,
        uniform_value=uniform_value(terms, utility.kind, prompts, budget, prior),
        seconds=time.perf_counter() - began,
    )


def is_folded(terms: FloatArray, prior: tuple[float, float]) -> bool:
    """Whether success and failure may be swapped: h symmetric and a == b."""
    return prior[0] == prior[1] and np.array_equal(terms, terms.T)


def check_problem(prompts: int, budget: int, prior: tuple[float, float], n_max: int | None) -> int:
    """Check a problem's numbers and give the largest count of one prompt.

    Raises:
        RollwiseError: naming the argument and a valid value.
    """
    if not 1 <= prompts <= MAX_PROMPTS:
        raise RollwiseError(f"prompts {prompts} is out of range: an exact table takes 1 to {MAX_PROMPTS}")
    if budget < 1:
        raise RollwiseError(f"budget {budget} is out of range: at least 1 rollout")
    if len(prior) != 2 or not all(0 < float(x) < float("inf") for x in prior):
        raise RollwiseError(f"prior {tuple(prior)} is not a Beta: give two positive numbers such as (1.0, 1.0)")
    if n_max is None:
        return budget
    if n_max * prompts < budget:
        raise RollwiseError(
            f"n_max {n_max} leaves no room: {prompts} prompts take {budget} rollouts only with n_max of at least "
            f"{-(-budget // prompts)}"
        )
    return min(n_max, budget)


def table_bytes(prompts: int, budget: int, cap: int, folded: bool, keep_values: bool, at_most: float) -> float:
    """Bytes a table takes: V and choices of every state, and the ranking counts; exact up to `at_most`."""
    types = (cap + 2) ** 2 // (4 if folded else 2)
    ranking = 8.0 * (prompts + 1) * (budget + 1) * types
    if ranking > at_most:
        return ranking
    a_state = (8 if keep_values else 1) + (1 if prompts <= 8 else 8)
    return ranking + a_state * count_states(prompts, budget, cap, folded, at_most / a_state)


def check_memory(prompts: int, budget: int, cap: int, folded: bool, keep_values: bool, limit: int) -> None:
    """Raise RollwiseError where a table would take more than `limit` bytes, with the block size that fits."""
    if table_bytes(prompts, budget, cap, folded, keep_values, limit) <= limit:
        return
    fits = prompts - 1
    while fits > 1 and table_bytes(fits, fits * budget // prompts, cap, folded, keep_values, limit) > limit:
        fits -= 1
    raise RollwiseError(
        f"an exact table for {prompts} prompts and budget {budget} exceeds memory_limit {limit / 2**30:.3g} GiB: "
        f"raise memory_limit, or solve blocks of {max(fits, 1)} prompts"
    )


def _induct(
    space: StateSpace, terms: FloatArray, is_min: bool, prior: tuple[float, float], keep: bool
) -> tuple[FloatArray, Any]:
    offsets, last = space.offsets, space.budget
    means, type_n = space.means(prior), space.type_n
    type_h = terms[space.type_s, space.type_f]
    choices = np.zeros(offsets[last], dtype=np.uint8 if space.prompts <= 8 else np.uint64)
    flat = np.empty(space.size) if keep else np.zeros(0)
    threads = thread_count()
    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    try:
        later = np.zeros(0)
        for t in range(last, -1, -1):
            low, high = int(offsets[t]), int(offsets[t + 1])
            now = flat[low:high] if keep else np.empty(high - low)
            if t == last:
                work = partial(_settle, space.counts, type_n, space.first, type_h, is_min, t, now)
            else:
                step = (space.counts, type_n, space.first, space.succeed, space.fail, means, t)
                work = partial(_improve, *step, later, now, choices[low:high])
            run_chunks(pool, now.size, work)
            later = now
    finally:
        if pool is not None:
            pool.shutdown()
    return (flat if keep else later), choices


@compile_kernel
def _settle(counts, type_n, first, type_h, is_min, total, values, low, high):  # type: ignore[no-untyped-def]
    prompts = counts.shape[0] - 1
    types = np.empty(prompts, dtype=np.int32)
    for state in range(low, high):
        unrank_state(counts, type_n, first, state, total, types)
        worth = type_h[types[0]]
        for q in range(1, prompts):
            term = type_h[types[q]]
            worth = min(worth, term) if is_min else worth + term
        values[state] = worth


@compile_kernel
def _improve(counts, type_n, first, succeed, fail, means, total, later, values, choices, low, high):  # type: ignore[no-untyped-def]
    prompts = counts.shape[0] - 1
    types = np.empty(prompts, dtype=np.int32)
    rest = np.empty(prompts, dtype=np.int64)
    before = np.empty(prompts + 1, dtype=np.int64)
    behind = np.empty(prompts + 1, dtype=np.int64)
    gains = np.empty(prompts)
    fresh = True
    for state in range(low, high):
        if fresh:
            unrank_state(counts, type_n, first, state, total, types)
        else:
            types[prompts - 1] += 1
        # Neighbouring ranks share all but the last type as long as that has a larger one of equal n below its left.
        following = types[prompts - 1] + 1
        ceiling = types[prompts - 2] if prompts > 1 else following
        fresh = following > ceiling or following >= first[type_n[types[prompts - 1]] + 1]

        left = total
        before[0] = 0
        for q in range(prompts):
            rest[q] = left
            before[q + 1] = before[q] + counts[prompts - q, left + 1, types[q]]
            left -= type_n[types[q]]
        behind[prompts] = 0
        for q in range(prompts - 1, -1, -1):
            behind[q] = behind[q + 1] + counts[prompts - q, rest[q], types[q]]

        best = -np.inf
        for q in range(prompts):
            kind = types[q]
            if succeed[kind] < 0 or (q > 0 and types[q - 1] == kind):
                gains[q] = -np.inf
                continue
            up = _moved_rank(counts, type_n, types, rest, before, behind, q, succeed[kind])
            down = _moved_rank(counts, type_n, types, rest, before, behind, q, fail[kind])
            gains[q] = means[kind] * later[up] + (1.0 - means[kind]) * later[down]
            best = max(best, gains[q])
        values[state] = best

        fewest = np.int64(1 << 62)
        for q in range(prompts):
            if gains[q] >= best - TOLERANCE:
                fewest = min(fewest, np.int64(type_n[types[q]]))
        bits = np.uint64(0)
        for q in range(prompts):
            if gains[q] >= best - TOLERANCE and type_n[types[q]] == fewest:
                bits |= np.uint64(1) << np.uint64(q)
        choices[state] = bits


@compile_kernel
def _moved_rank(counts, type_n, types, rest, before, behind, q, new):  # type: ignore[no-untyped-def]
    """Rank in the next layer after the q-th type became `new`, a larger one: only places p..q shift."""
    prompts = types.size
    p = q
    while p > 0 and types[p - 1] < new:
        p -= 1
    rank = before[p] + counts[prompts - p, rest[p] + 1, new] + behind[q + 1]
    for place in range(p, q):
        rank += counts[prompts - place - 1, rest[place] + 1 - type_n[new], types[place]]
    return rank
