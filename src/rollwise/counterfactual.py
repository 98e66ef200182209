"""What adaptive rules would have made of a step that was trained uniformly: a zero-risk first look.

Each prompt's success probability is drawn from its posterior after the step's own outcomes, and every rule then spends
the same budget on coins of those probabilities. The numbers are estimates with the noise of `draws` replays; training is
not touched.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from rollwise.allocators import Allocator, Uniform, get_allocator
from rollwise.step import Step
from rollwise.types import FloatArray, StepRecord
from rollwise.utilities import UTILITIES

REPORTED = ("dead_prompt_share", "informative_rollout_share", "unsolved_share", "max_n")


def would_have_changed(
    record: StepRecord, waves: int = 4, n_min: int = 2, draws: int | None = None
) -> dict[str, float]:
    """Mean metrics of a step like `record` under `uniform` and under AdaRoll with every utility.

    Keys are `<rule>/<metric>` with the metrics of `REPORTED`. `draws` replays are averaged, by default as many as make 32
    prompts. Deterministic: draws are seeded by the step's number.
    """
    size = len(record.prompt_ids)
    prior = opening_beliefs(record)
    rng = np.random.default_rng([record.step, size])
    a, b = prior[:, 0] + record.successes, prior[:, 1] + record.failures
    coins = rng.beta(a, b, size=(draws or max(1, 32 // size), size))
    n_min = min(n_min, record.budget // size)
    return {
        f"{name}/{metric}": float(np.mean([found[metric] for found in played]))
        for name, rule in compared().items()
        for played in [[play(rule, coin, record, prior, waves, n_min, rng) for coin in coins]]
        for metric in REPORTED
    }


def opening_beliefs(record: StepRecord) -> FloatArray:
    """(B, 2) beliefs the step opened with: those its first wave was issued under; every prompt must be in that wave."""
    first = {rollout.prompt_id: rollout.belief for rollout in record.rollouts if rollout.wave == 0}
    return np.array([first[prompt_id] for prompt_id in record.prompt_ids])


@cache
def compared() -> dict[str, Allocator]:
    """The rules compared, by name; kept, since a rule may hold solved tables and says some things only once."""
    return {"uniform": Uniform()} | {name: get_allocator("adaroll", utility=name) for name in UTILITIES}


def play(
    rule: Allocator,
    coins: FloatArray,
    record: StepRecord,
    prior: FloatArray,
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
