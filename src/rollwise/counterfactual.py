"""What adaptive rules would have made of a step that was trained uniformly: a zero-risk first look.

Each prompt's success probability is drawn from its posterior after the step's own outcomes, and every rule then spends
the same budget on coins of those probabilities. The numbers are estimates with the noise of `draws` replays; training is
not touched.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from rollwise.allocators import Allocator, Uniform, get_allocator
from rollwise.beliefs import parse_prior
from rollwise.step import Step
from rollwise.types import FloatArray, StepRecord
from rollwise.utilities import UTILITIES

REPORTED = ("dead_prompt_share", "informative_rollout_share", "unsolved_share", "max_n")


def would_have_changed(
    record: StepRecord,
    prior: str | tuple[float, float] = (1.0, 1.0),
    waves: int = 4,
    n_min: int = 2,
    draws: int | None = None,
) -> dict[str, float]:
    """Mean metrics of a step like `record` under `uniform` and under AdaRoll with every utility.

    Keys are `<rule>/<metric>` with the metrics of `REPORTED`. `draws` replays are averaged, by default as many as make 32
    prompts. Deterministic: draws are seeded by the step's number.
    """
    a, b = parse_prior(prior)
    size = len(record.prompt_ids)
    rng = np.random.default_rng([record.step, size])
    coins = rng.beta(a + record.successes, b + record.failures, size=(draws or max(1, 32 // size), size))
    n_min = min(n_min, record.budget // size)
    return {
        f"{name}/{metric}": float(
            np.mean([play(rule, coin, record, (a, b), waves, n_min, rng)[metric] for coin in coins])
        )
        for name, rule in compared().items()
        for metric in REPORTED
    }


@cache
def compared() -> dict[str, Allocator]:
    """The rules compared, by name; kept, since a rule may hold solved tables and says some things only once."""
    return {"uniform": Uniform()} | {name: get_allocator("adaroll", utility=name) for name in UTILITIES}


def play(
    rule: Allocator,
    coins: FloatArray,
    record: StepRecord,
    prior: tuple[float, float],
    waves: int,
    n_min: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Metrics of one step that spends `record.budget` on coins (B,) by `rule`; nothing is recorded."""
    step = Step(record.prompt_ids, rule, record.budget, rng=rng, waves=waves, prior=prior, n_min=n_min)
    chance = dict(zip(record.prompt_ids, coins, strict=True))
    while wave := step.next_wave():
        step.observe(*(rollout.result(rng.random() < chance[rollout.prompt_id]) for rollout in wave.rollouts))
    return step.close().metrics
