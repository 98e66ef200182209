"""The most that allocation can save: variance of a gradient estimate against the uniform one, at equal weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rollwise.objectives import get_objective
from rollwise.pool import Pool
from rollwise.types import FloatArray, RollwiseError


@dataclass(frozen=True)
class Ceiling:
    """Variance as a share of uniform's at the same number of rollouts: 1 saves nothing, 0.9 saves 10 % of them.

    `oracle` knows every prompt's rate; `belief` starts from the population and learns from the rollouts themselves, one at
    a time, with at most `cap` on a prompt and a pool that is large.
    """

    objective: str
    per_prompt: int
    cap: int
    oracle: float
    belief: float


def ceiling(
    pool: Pool | tuple[float, float], objective: Any = "mean", per_prompt: int = 8, cap: int | None = None
) -> Ceiling:
    """Best allocation of `per_prompt` rollouts on the average over `pool` (or the a, b of a Beta) for an objective.

        oracle:  E[w sqrt(pq)]^2 / E[w^2 p q]                          (Neyman: n_i proportional to w_i sqrt(p_i q_i))
        belief:  max over lam of  per_prompt (V(lam) - lam per_prompt) / E[w^2 p q],
                 V = optimal stopping of  E[w^2 p q | s, f] / n + lam n,  n >= 1

    where w = w_F(p) is the true weight, learned with p. `cap` is the most rollouts on one prompt, by default 8 per_prompt.

    Raises:
        RollwiseError: per_prompt below 1, or cap not above it.
    """
    cap = 8 * per_prompt if cap is None else cap
    if per_prompt < 1 or cap <= per_prompt:
        raise RollwiseError(f"per_prompt: {per_prompt} with cap {cap}; at least 1, and the cap above it")
    found = get_objective(objective)
    pool = pool if isinstance(pool, Pool) else Pool.beta(*pool)
    weight = found.weight(pool.rates)
    variance = weight**2 * pool.rates * (1 - pool.rates)
    uniform = float(pool.shares @ variance)
    if uniform == 0:
        return Ceiling(found.name, per_prompt, cap, 1.0, 1.0)  # no prompt of the pool can teach anything
    oracle = float(pool.shares @ np.sqrt(variance)) ** 2 / uniform
    chances, left = belief_layers(pool, variance, cap)

    def bound(price: float) -> tuple[float, float]:
        """What stopping costs at this price less what the average budget pays, and the rollouts it takes."""
        cost, taken = left[-1] / cap, np.zeros(cap + 1)
        for n in range(cap - 1, 0, -1):
            go = price + chances[n] * cost[1:] + (1 - chances[n]) * cost[:-1]
            stop = left[n] / n
            more = go < stop
            taken = np.where(more, 1 + chances[n] * taken[1:] + (1 - chances[n]) * taken[:-1], 0.0)
            cost = np.where(more, go, stop)
        first = chances[0]
        spent = float(1 + (first * taken[1:] + (1 - first) * taken[:-1])[0])
        value = price + float((first * cost[1:] + (1 - first) * cost[:-1])[0])
        return value - price * per_prompt, spent

    low, high = 0.0, uniform
    for _ in range(60):
        price = (low + high) / 2
        low, high = (price, high) if bound(price)[1] > per_prompt else (low, price)
    best = max(bound(low)[0], bound(high)[0])
    return Ceiling(found.name, per_prompt, cap, oracle, best * per_prompt / uniform)


def belief_layers(pool: Pool, value: FloatArray, cap: int) -> tuple[list[FloatArray], list[FloatArray]]:
    """For n = 0..cap rollouts: chance that the next one succeeds and E[value(p)], each (n+1,) over successes.

    Under the pool itself as prior, `P(p | s, f) ~ share p^s q^f`; outcomes that no rate of the pool allows get 0.
    """
    chances, means = [], []
    with np.errstate(divide="ignore", invalid="ignore"):
        log_share, log_p, log_q = np.log(pool.shares), np.log(pool.rates), np.log1p(-pool.rates)
        for n in range(cap + 1):
            s = np.arange(n + 1)[:, None]
            won = np.where(s > 0, s * log_p, 0.0)
            lost = np.where(n - s > 0, (n - s) * log_q, 0.0)
            log_posterior = log_share + won + lost
            peak = log_posterior.max(axis=1, keepdims=True)
            posterior = np.where(np.isfinite(peak), np.exp(log_posterior - np.where(np.isfinite(peak), peak, 0.0)), 0)
            mass = np.maximum(posterior.sum(axis=1), 1e-300)
            chances.append(posterior @ pool.rates / mass)
            means.append(posterior @ value / mass)
    return chances, means
