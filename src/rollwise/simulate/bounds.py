"""What no rule can exceed on a pool, even one that knows the pool: bounds for prompts drawn from any mixture of coins.

    W(s, f) = max( h(s, f),  -lam + mu W(s+1, f) + (1-mu) W(s, f+1) ),     mu = E[p^(s+1) q^f] / E[p^s q^f]
    sum:      E <= B W(0, 0) + lam N     for any lam
    minimum:  E <= the mean of the sum's bound, and level by level, good = [h >= x],
              P(all good) <= e^(c N) V(0, 0)^B,   V = max( good, e^-c (mu V(s+1, f) + (1-mu) V(s, f+1)) )   for any c

The solver's bounds (`rollwise.solver`) with the pool's own posterior in place of a Beta's. Where the pool is a Beta, the
exact optimum of a small step is known too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rollwise.pool import Pool
from rollwise.simulate.pools import BetaPool, Coins
from rollwise.solver import cached_solve
from rollwise.solver.jit import compile_kernel
from rollwise.solver.states import count_states
from rollwise.types import FloatArray, RollwiseError
from rollwise.utilities import Utility

MOST_STATES = 4_000_000
"""Largest exact table solved for a comparison; B=4, N=32 takes 3,410,459 where success and failure differ."""

LARGEST = 1024
"""Largest cap on one prompt that a bound is computed for; time grows as its square."""

LEVELS = 32
"""Levels of h a minimum is split into; between two of them the chance is bounded by that of the lower one."""

_GOLDEN = (5**0.5 - 1) / 2


def pool_bound(utility: Utility, pool: Coins, prompts: int, budget: int, cap: int | None = None) -> float:
    """Upper bound on the expected utility of spending `budget` rollouts on `prompts` prompts of the pool, at most
    `cap` on one of them (by default the budget).

    Raises:
        RollwiseError: the cap leaves no room for the budget, or is above `LARGEST`.
    """
    most = min(budget, budget if cap is None else cap)
    if most * prompts < budget or most > LARGEST:
        fit = f"from {-(-budget // prompts)} to {LARGEST}"
        raise RollwiseError(f"n_max: {most} for a bound on {prompts} prompts and {budget} rollouts; give one {fit}")
    chances, table = success_chances(pool, most), utility.table(most)
    n, s = np.tril_indices(most + 1)
    terms = np.zeros_like(table)
    terms[n, s] = table[s, n - s]
    steepest = 1.001 * float(terms.max() - terms.min()) + 1e-9
    total = minimise(lambda lam: prompts * _worth(terms, chances, lam) + lam * budget, -steepest, steepest)
    if utility.kind == "sum":
        return total
    return min(total / prompts, _tail(terms, chances, prompts, budget))


def minimise(function: Callable[[float], float], low: float, high: float) -> float:
    """Least value of a convex function that golden-section search meets; any value it returns was taken."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(40):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return min(at_left, at_right)


def exact_optimum(utility: Utility, pool: Coins, prompts: int, budget: int, cap: int | None = None) -> float | None:
    """The exact optimum where the pool is one Beta and the table has at most `MOST_STATES` states, else None."""
    if not isinstance(pool, BetaPool) or len(pool.a) > 1:
        return None
    a, b = pool.prior
    most = budget if cap is None else min(cap, budget)
    folded = a == b and utility.symmetric
    if prompts > 16 or count_states(prompts, budget, most, folded, MOST_STATES) > MOST_STATES:
        return None
    return cached_solve(utility, prompts, budget, (a, b), None if cap is None or cap >= budget else cap).value


def success_chances(pool: Coins, most: int) -> FloatArray:
    """[most, most+1] over (n, s): the chance that a prompt with s successes in n rollouts succeeds next."""
    shares, rise = _components(pool)
    found = np.full((most, most + 1), 0.5)
    with np.errstate(divide="ignore"):
        evidence = np.log(shares)[:, None]  # (K, n+1) log of share_k E_k[p^s q^f]
        for n in range(most):
            top = evidence.max(axis=0)
            weight = np.exp(evidence - np.where(np.isfinite(top), top, 0.0))
            total = weight.sum(axis=0)
            chance = rise(n)
            # a state that no prompt of the pool can be in keeps its 1/2: it is never reached
            met = total > 0
            found[n, : n + 1][met] = (weight * chance).sum(axis=0)[met] / total[met]
            fail = evidence + np.log1p(-chance)
            evidence = np.concatenate([fail, (evidence + np.log(chance))[:, -1:]], axis=1)
    return found


def _components(pool: Coins):  # type: ignore[no-untyped-def]
    """Shares (K,), and a function from n to each component's own chance (K, n+1) of success at s = 0 .. n."""
    if isinstance(pool, BetaPool):
        a, b = pool.a[:, None], pool.b[:, None]
        return pool.shares, lambda n: (a + np.arange(n + 1)) / (a + b + n)
    if isinstance(pool, Pool):
        return pool.shares, lambda n: np.broadcast_to(pool.rates[:, None], (len(pool.rates), n + 1))
    raise RollwiseError(f"pool: no bound is known for a {type(pool).__name__}; give a Pool or BetaPool")


def _tail(terms: FloatArray, chances: FloatArray, prompts: int, budget: int) -> float:
    """Bound on E[min h] by the chance that all prompts reach each level of h."""
    n, s = np.tril_indices(terms.shape[0])
    levels = np.unique(terms[n, s])
    chosen = np.unique(np.linspace(0, levels.size - 1, min(levels.size, LEVELS + 1)).astype(int))
    bound = float(levels[0])
    for below, above in zip(chosen[:-1], chosen[1:], strict=True):
        # from here to the next level chosen, the chance is at most that of getting past this one
        good = np.where(terms >= levels[below + 1], 0.0, -np.inf)

        def log_chance(factor: float, good: FloatArray = good) -> float:
            return factor * budget + prompts * _log_reach(good, chances, factor)

        bound += float(levels[above] - levels[below]) * float(np.exp(min(0.0, minimise(log_chance, -2.0, 6.0))))
    return bound


@compile_kernel
def _worth(terms, chances, lam):  # type: ignore[no-untyped-def]
    """W at no rollouts, price lam."""
    most = chances.shape[0]
    value = terms[most].copy()
    for n in range(most - 1, -1, -1):
        for s in range(n + 1):
            go = value[s] + chances[n, s] * (value[s + 1] - value[s]) - lam
            value[s] = max(go, terms[n, s])
    return value[0]


@compile_kernel
def _log_reach(good, chances, factor):  # type: ignore[no-untyped-def]
    """log V at no rollouts; logarithms, since V spans hundreds of orders of magnitude."""
    most = chances.shape[0]
    value = good[most].copy()
    for n in range(most - 1, -1, -1):
        for s in range(n + 1):
            up, down = value[s + 1], value[s]
            top = max(up, down)
            go = -np.inf
            if top > -np.inf:
                mu = chances[n, s]
                mixed = mu * np.exp(up - top) + (1.0 - mu) * np.exp(down - top)
                if mixed > 0.0:
                    go = top + np.log(mixed) - factor
            value[s] = max(go, good[n, s])
    return value[0]
