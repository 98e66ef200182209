"""What other rules would have made of a uniform step."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.allocators import Observe, Uniform
from rollwise.counterfactual import opening_beliefs, play, would_have_changed
from rollwise.step import Step
from rollwise.types import StepRecord


def observed(chances: list[float], per_prompt: int = 8) -> StepRecord:
    rng = np.random.default_rng(1)
    step = Step([str(k) for k in range(len(chances))], Observe(), len(chances) * per_prompt, rng=rng)
    while wave := step.next_wave():
        step.observe(*(r.result(rng.random() < chances[int(r.prompt_id)]) for r in wave.rollouts))
    return step.close()


def test_adaptive_rules_are_expected_to_leave_fewer_dead_prompts() -> None:
    record = observed([0.02, 0.05, 0.1, 0.5, 0.5, 0.8, 0.95, 0.98])
    found = would_have_changed(record, draws=60)
    assert found["min_variance/dead_prompt_share"] < found["uniform/dead_prompt_share"] - 0.05
    assert found["sum_max_reward/unsolved_share"] < found["uniform/unsolved_share"]
    assert found["uniform/max_n"] == 8


def test_the_same_record_gives_the_same_numbers() -> None:
    record = observed([0.2, 0.5, 0.7])
    assert would_have_changed(record) == would_have_changed(record)


def test_uniform_agrees_with_the_formula_for_dead_groups() -> None:
    record, n, draws = observed([0.5] * 6, per_prompt=4), 4, 400
    rng = np.random.default_rng(0)
    p = rng.beta(1 + record.successes, 1 + record.failures, size=(draws, 6))
    found = np.mean(
        [play(Uniform(), coins, record, opening_beliefs(record), 4, 2, rng)["dead_prompt_share"] for coins in p]
    )
    assert found == pytest.approx((p**n + (1 - p) ** n).mean(), abs=4 * np.sqrt(0.25 / (draws * 6)))
