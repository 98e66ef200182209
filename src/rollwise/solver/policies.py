"""What a fixed rule is worth exactly, and one step of policy improvement on it, over the states of the exact table.

A rule is a key per (s, f): the prompt with the largest key gets the next rollout. Its value V^rule is found by backward
induction; the improved rule serves argmax_i mu_i V^rule(x + success_i) + (1 - mu_i) V^rule(x + failure_i).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollwise.solver.exact import MEMORY_LIMIT, TOLERANCE, _moved_rank, _settle, check_memory, check_problem, is_folded
from rollwise.solver.jit import compile_kernel
from rollwise.solver.states import build_space, unrank_state
from rollwise.types import FloatArray
from rollwise.utilities import Utility


@dataclass(frozen=True)
class RuleValue:
    """Expected utility of a rule, and of the rule after one step of policy improvement."""

    value: float
    improved: float


def evaluate_rule(
    utility: Utility, prompts: int, budget: int, keys: FloatArray, prior: tuple[float, float] = (1.0, 1.0)
) -> RuleValue:
    """Exact value of "largest key first" under one shared prior; which of equal prompts is served does not matter.

    Args:
        keys: [n+1, n+1] over (s, f), n the cap of one prompt; -inf forbids.

    Raises:
        RollwiseError: a bad argument, or a problem too large for memory.
    """
    cap = min(keys.shape[0] - 1, budget)
    check_problem(prompts, budget, prior, cap)
    terms = utility.table(cap)
    own = keys[: cap + 1, : cap + 1]
    folded = is_folded(terms, prior) and np.array_equal(own, own.T)
    check_memory(prompts, budget, cap, folded, True, MEMORY_LIMIT)
    space = build_space(prompts, budget, cap, folded)
    type_keys = np.round(own[space.type_s, space.type_f], 12)
    type_terms, means = terms[space.type_s, space.type_f], space.means(prior)
    last = int(space.offsets[-1] - space.offsets[-2])
    values = np.empty(last)
    _settle(space.counts, space.type_n, space.first, type_terms, utility.kind == "min", budget, values, 0, last)
    improved = values.copy()
    for t in range(budget - 1, -1, -1):
        size = int(space.offsets[t + 1] - space.offsets[t])
        now, now_improved = np.empty(size), np.empty(size)
        _follow(
            space.counts,
            space.type_n,
            space.first,
            space.succeed,
            space.fail,
            means,
            type_keys,
            t,
            values,
            improved,
            now,
            now_improved,
        )
        values, improved = now, now_improved
    return RuleValue(float(values[0]), float(improved[0]))


@compile_kernel
def _follow(  # type: ignore[no-untyped-def]
    counts, type_n, first, succeed, fail, means, keys, total, values, improved, now, now_improved
):
    prompts = counts.shape[0] - 1
    types = np.empty(prompts, dtype=np.int32)
    rest = np.empty(prompts, dtype=np.int64)
    before = np.empty(prompts + 1, dtype=np.int64)
    behind = np.empty(prompts + 1, dtype=np.int64)
    for state in range(now.size):
        unrank_state(counts, type_n, first, state, total, types)
        left = total
        before[0] = 0
        for q in range(prompts):
            rest[q] = left
            before[q + 1] = before[q] + counts[prompts - q, left + 1, types[q]]
            left -= type_n[types[q]]
        behind[prompts] = 0
        for q in range(prompts - 1, -1, -1):
            behind[q] = behind[q + 1] + counts[prompts - q, rest[q], types[q]]
        key, best, fewest = -np.inf, -np.inf, 0
        now[state], now_improved[state] = -np.inf, -np.inf
        for q in range(prompts):
            kind = types[q]
            if succeed[kind] < 0 or (q > 0 and types[q - 1] == kind):
                continue
            up = _moved_rank(counts, type_n, types, rest, before, behind, q, succeed[kind])
            down = _moved_rank(counts, type_n, types, rest, before, behind, q, fail[kind])
            mu, n = means[kind], type_n[kind]
            worth = mu * values[up] + (1.0 - mu) * values[down]
            if now[state] == -np.inf or keys[kind] > key or (keys[kind] == key and n < type_n[fewest]):
                key, fewest = keys[kind], kind
                now[state] = worth
            if worth > best + TOLERANCE:
                best = worth
                now_improved[state] = mu * improved[up] + (1.0 - mu) * improved[down]
