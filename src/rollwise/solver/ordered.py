"""The exact optimum where prompts have different priors or caps: backward induction over ordered states, small steps only.

A state is the 2B numbers of successes and failures still to come, C(N + 2B, 2B) of them up to N in all; those of t
rollouts are ranked in lexicographic order by  rank(c) = sum_i C(r_i + d - i, d - i) - C(r_i - c_i + d - i, d - i),
d = 2B, r_i = c_i + ... + c_d.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from rollwise.solver.jit import compile_kernel
from rollwise.solver.prompts import PromptStates, terms_by_total
from rollwise.types import FloatArray, IntArray, RollwiseError
from rollwise.utilities import Utility

MOST_STATES = 5_000_000
"""States up to which a step is solved: two values each in the largest layer."""


@dataclass(frozen=True)
class OrderedOptimum:
    """`value` of the best play of the budget, (P,) `gains` of serving each prompt first, and `uniform` play's value."""

    value: float
    gains: FloatArray
    uniform: float
    states: int

    def action(self, paid: IntArray) -> int:
        """Slot to serve first; ties within 1e-12 go to the fewest paid, then the lowest slot."""
        best = np.flatnonzero(self.gains >= self.gains.max() - 1e-12)
        return int(best[np.argmin(paid[best])])


def count_ordered(prompts: int, budget: int) -> int:
    """C(N + 2B, 2B), the states of a step without symmetry."""
    return comb(budget + 2 * prompts, 2 * prompts)


def solve_ordered(utility: Utility, prompts: PromptStates, budget: int) -> OrderedOptimum:
    """The exact optimum of `budget` more rollouts from these states, sums and minima alike; nothing may be running.

    Raises:
        RollwiseError: above `MOST_STATES`, rollouts running, or no room.
    """
    states = count_ordered(prompts.size, budget)
    if states > MOST_STATES:
        raise RollwiseError(
            f"prompts {prompts.size} with budget {budget} and different priors make {states} states, above "
            f"{MOST_STATES}: use the price bound and the index policy, or a smaller budget"
        )
    if prompts.pending.any() or budget < 1 or prompts.room.sum() < budget:
        raise RollwiseError(f"budget {budget} is not to be solved: give 1 or more, within n_max, nothing running")
    depth = 2 * prompts.size
    binomials = np.array([[comb(n, k) for k in range(depth + 1)] for n in range(budget + depth + 1)], dtype=np.int64)
    room = np.minimum(prompts.room, budget)
    terms = terms_by_total(utility, int((prompts.successes + prompts.failures).max()) + budget)[0]
    alpha, beta = prompts.a + prompts.successes, prompts.b + prompts.failures
    later = later_uniform = np.zeros(0)
    gains = np.full(prompts.size, -np.inf)
    for t in range(budget, -1, -1):
        size = comb(t + depth - 1, depth - 1)
        now, uniform = np.empty(size), np.empty(size)
        counts = (prompts.successes, prompts.failures)
        if t == budget:
            _settle(*counts, terms, utility.kind == "min", t, now)
            uniform[:] = now
        else:
            _improve(binomials, alpha, beta, *counts, room, t, later, later_uniform, now, uniform, gains)
        later, later_uniform = now, uniform
    return OrderedOptimum(float(later[0]), gains, float(later_uniform[0]), states)


@compile_kernel
def _advance(state):  # type: ignore[no-untyped-def]
    """The next vector of equal sum in lexicographic order, in place."""
    last = state.size - 1
    place = last
    while state[place] == 0:
        place -= 1
    moved = state[place] - 1
    state[place] = 0
    state[place - 1] += 1
    state[last] = moved


@compile_kernel
def _settle(s, f, terms, is_min, total, values):  # type: ignore[no-untyped-def]
    size = s.size
    state = np.zeros(2 * size, dtype=np.int64)
    state[2 * size - 1] = total
    for rank in range(values.size):
        worth = 0.0
        for i in range(size):
            right, wrong = s[i] + state[2 * i], f[i] + state[2 * i + 1]
            term = terms[right + wrong, right]
            worth = term if i == 0 else (min(worth, term) if is_min else worth + term)
        values[rank] = worth
        if rank + 1 < values.size:
            _advance(state)


@compile_kernel
def _rank(binomials, state, total):  # type: ignore[no-untyped-def]
    depth = state.size
    rank, left = 0, total
    for i in range(depth - 1):
        rest = depth - 1 - i
        rank += binomials[left + rest, rest] - binomials[left - state[i] + rest, rest]
        left -= state[i]
    return rank


@compile_kernel
def _improve(  # type: ignore[no-untyped-def]
    binomials, alpha, beta, s, f, room, total, later, later_uniform, values, uniform, gains
):
    size = alpha.size
    state = np.zeros(2 * size, dtype=np.int64)
    state[2 * size - 1] = total
    for rank in range(values.size):
        best, least, level = -np.inf, -np.inf, np.int64(1 << 62)
        for i in range(size):
            seen = state[2 * i] + state[2 * i + 1]
            gains[i] = -np.inf
            if seen >= room[i]:
                continue
            mu = (alpha[i] + state[2 * i]) / (alpha[i] + beta[i] + seen)
            state[2 * i] += 1
            up = _rank(binomials, state, total + 1)
            state[2 * i] -= 1
            state[2 * i + 1] += 1
            down = _rank(binomials, state, total + 1)
            state[2 * i + 1] -= 1
            gains[i] = mu * later[up] + (1.0 - mu) * later[down]
            best = max(best, gains[i])
            if s[i] + f[i] + seen < level:
                level = s[i] + f[i] + seen
                least = mu * later_uniform[up] + (1.0 - mu) * later_uniform[down]
        values[rank], uniform[rank] = best, least
        if rank + 1 < values.size:
            _advance(state)
