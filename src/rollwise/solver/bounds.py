"""Upper bounds on what any policy can be worth, for sums and for minima over prompts.

A sum separates under a price (`prices`). A minimum is at most the average, and its tail separates under a *factor*: with
good_i = [h_i >= x] and every rollout charged e^-c,

    P(all good) <= e^(c N) prod_i V_i,    V(s, f) = max( good, e^-c (mu V(s+1, f) + (1-mu) V(s, f+1)) )     for any c

since prod_i V_i is a supermartingale whoever is served, and e^(c (N - sum n_i)) = 1 once N is spent. Then
E[min h] = h_0 + sum_k (x_k - x_{k-1}) P(min h >= x_k) over the levels x_k of h. The smaller of the two is given.
"""

from __future__ import annotations

import numpy as np

from rollwise.solver.dual import find_price
from rollwise.solver.jit import compile_kernel
from rollwise.solver.prices import Bound, check_room, price_bound
from rollwise.solver.prompts import PromptStates, terms_by_total
from rollwise.solver.waves import wave_bound
from rollwise.utilities import Utility

LEVELS = 32
"""Levels of h a minimum is split into; between two of them the tail is bounded by its value at the lower one."""


def upper_bound(utility: Utility, prompts: PromptStates, budget: int, waves: int | None = None) -> Bound:
    """The tightest bound here on the expected utility of spending `budget` rollouts, in at most `waves` waves.

    For a minimum, `price` and `spend` are those of the sum where that was tighter, else NaN.

    Raises:
        RollwiseError: the caps leave no room for the budget.
    """
    total = Utility(utility.name, "sum", utility.term, utility.advantage_form, utility.n_limit)
    sum_bound = price_bound(total, prompts, budget) if waves is None else wave_bound(total, prompts, budget, waves)
    if utility.kind == "sum":
        return sum_bound
    average = Bound(
        sum_bound.value / prompts.size, sum_bound.price, sum_bound.spend, sum_bound.cap, sum_bound.floor / prompts.size
    )
    by_tail = tail_bound(utility, prompts, budget)
    if average.value <= by_tail:
        return average
    return Bound(by_tail, float("nan"), float("nan"), prompts.top, -float("inf"))


def tail_bound(utility: Utility, prompts: PromptStates, budget: int) -> float:
    """Bound on E[min_i h_i] by the chance that all prompts reach each level; costs must be 1."""
    check_room(prompts, budget)
    terms = terms_by_total(utility, prompts.top)[0]
    n, s = np.tril_indices(terms.shape[0])
    levels = np.unique(terms[n, s])
    chosen = np.unique(np.linspace(0, levels.size - 1, min(levels.size, LEVELS + 1)).astype(int))
    first, _, counts = prompts.grouped()
    groups = prompts.take(first)
    columns = (
        groups.a + groups.successes,
        groups.b + groups.failures,
        groups.successes,
        groups.failures,
        groups.pending,
        groups.room,
    )

    def chance(level: float) -> float:
        good = (terms >= level).astype(np.float64)

        def evaluate(factor: float) -> tuple[float, float]:
            logs, spend = np.empty(groups.size), np.empty(groups.size)
            _reach_all(*columns, good, factor, logs, spend)
            return float(counts @ logs), float(counts @ spend)

        if np.isneginf(evaluate(0.0)[0]):
            return 0.0
        return float(np.exp(min(0.0, find_price(evaluate, float(budget), -8.0, 8.0).value)))

    bound = float(levels[0])
    for below, above in zip(chosen[:-1], chosen[1:]):
        bound += (levels[above] - levels[below]) * chance(float(levels[below + 1]))
    return bound


@compile_kernel
def _reach_all(alpha, beta, s, f, pending, room, good, factor, logs, spend):  # type: ignore[no-untyped-def]
    """log V and the expected rollouts under the chances V weighs by, per prompt."""
    value, count = np.empty(2 + (pending + room).max()), np.empty(2 + (pending + room).max())
    charge = np.exp(-factor)
    for p in range(alpha.size):
        n, depth = s[p] + f[p], pending[p] + room[p]
        for j in range(depth + 1):
            value[j] = good[n + depth, s[p] + j]
            count[j] = 0.0
        for i in range(depth - 1, -1, -1):
            part = 1.0 / (alpha[p] + beta[p] + i)
            for j in range(i + 1):
                mu = (alpha[p] + j) * part
                go = value[j] + mu * (value[j + 1] - value[j])
                counted = count[j] + mu * (count[j + 1] - count[j])
                if i < pending[p]:
                    value[j], count[j] = go, counted
                    continue
                stop = good[n + i, s[p] + j]
                more = charge * go > stop
                count[j] = charge * (counted + go) if more else 0.0
                value[j] = charge * go if more else stop
        logs[p] = np.log(value[0]) if value[0] > 0.0 else -np.inf
        spend[p] = count[0] / value[0] if value[0] > 0.0 else 0.0
