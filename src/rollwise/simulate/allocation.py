"""Who gets how many rollouts: counts against mean reward per utility, and what was published about them.

The statements are those of AdaRoll-GRPO (arXiv 2610.37429, D.2, figure 7), made there of one batch of one model; here they
are checked over many steps on a pool, and what does not hold is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollwise.allocators import get_allocator
from rollwise.simulate.environment import Environment, play
from rollwise.simulate.pools import Coins
from rollwise.step import Step
from rollwise.types import FloatArray, IntArray
from rollwise.utilities import UTILITIES


@dataclass(frozen=True, eq=False)
class Picture:
    """Rollouts and successes (P,) of all prompts of a number of steps of one utility."""

    counts: IntArray
    successes: IntArray

    @property
    def reward(self) -> FloatArray:
        """(P,) mean reward, 0 without rollouts."""
        return self.successes / np.maximum(self.counts, 1)


@dataclass(frozen=True)
class Statement:
    """What was published, what was found here, and whether it holds here."""

    claim: str
    found: str
    holds: bool


def picture(
    utility: str, pool: Coins, prompts: int, budget: int, *, steps: int, seed: int = 0, waves: int | None = None
) -> Picture:
    """Play steps by the rule of a utility: one rollout at a time as published, or in waves."""
    rule = get_allocator("adaroll", utility=utility, sequential=waves is None)
    environment, rng = Environment(pool, seed), np.random.default_rng(seed)
    counts, successes = [], []
    for index in range(steps):
        ids, rates = environment.open(index, prompts)
        step = Step(ids, rule, budget, rng=rng, index=index, waves=waves or 1, n_min=0)
        record = play(step, rates, (seed, index)).record
        counts.append(record.counts)
        successes.append(record.successes)
    return Picture(np.concatenate(counts), np.concatenate(successes))


def pictures(
    pool: Coins, prompts: int, budget: int, *, steps: int, seed: int = 0, waves: int | None = None
) -> dict[str, Picture]:
    """One per published utility, on the same prompts and coins."""
    return {name: picture(name, pool, prompts, budget, steps=steps, seed=seed, waves=waves) for name in UTILITIES}


def statements(found: dict[str, Picture], prompts: int, budget: int) -> list[Statement]:
    """The published statements, checked. Differences count where they exceed two standard errors."""
    even = budget / prompts
    whole = found["sum_squared_advantage"]
    everything = whole.counts == budget
    largest = found["min_squared_advantage"].counts
    solved = {name: found[name].counts[found[name].reward == 1.0] for name in ("min_variance", "sum_variance")}
    over = {name: float(n.mean()) if len(n) else 0.0 for name, n in solved.items()}
    unsolved = {name: (found[name].successes == 0).astype(np.float64) for name in ("sum_max_reward", "min_max_reward")}
    share = {name: float(x.mean()) for name, x in unsolved.items()}
    reward = float(whole.reward[everything].mean()) if everything.any() else float("nan")
    return [
        Statement(
            f"sum_squared_advantage gives single prompts all {budget} rollouts, at a mean reward near 0.33",
            f"{everything.mean():.1%} of the prompts get all, at mean reward {reward:.2f}",
            bool(everything.any()),
        ),
        Statement(
            "min_squared_advantage gives no prompt more than 15 of 32 rollouts",
            f"largest {largest.max()} of {budget}; above 15/32 of the budget: {(largest > budget * 15 / 32).mean():.1%}",
            bool(largest.max() <= budget * 15 / 32),
        ),
        Statement(
            f"min_variance gives prompts with mean reward 1 more than the average {even:g}",
            f"{over['min_variance']:.1f} on average",
            over["min_variance"] > even + 2 * _error(solved["min_variance"]),
        ),
        Statement(
            "sum_variance does so less",
            f"{over['sum_variance']:.1f} on average, against {over['min_variance']:.1f}",
            over["min_variance"] - over["sum_variance"] > 2 * sum(_error(n) ** 2 for n in solved.values()) ** 0.5,
        ),
        Statement(
            "sum_max_reward leaves fewer prompts unsolved than min_max_reward (4 against 7)",
            f"{share['sum_max_reward']:.1%} against {share['min_max_reward']:.1%}",
            share["min_max_reward"] - share["sum_max_reward"]
            > 2 * _error(unsolved["min_max_reward"] - unsolved["sum_max_reward"]),
        ),
    ]


def _error(values: np.ndarray) -> float:
    return float(np.std(values) / np.sqrt(len(values))) if len(values) else float("inf")
