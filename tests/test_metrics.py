"""Step metrics and row weights by hand on groups of 2 and 6."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.allocators import get_allocator
from rollwise.metrics import step_metrics
from rollwise.step import Step
from rollwise.types import Outcome, RollwiseError
from rollwise.weighting import row_weights


def test_metrics_of_unequal_groups_by_hand() -> None:
    slots = np.array([0, 0, 1, 1, 1, 1, 1, 1])
    rewards = np.array([1.0, 1.0, 0, 0, 0, 1, np.nan, 0])
    outcomes = {Outcome.SUCCESS: np.array([2, 1, 0]), Outcome.UNKNOWN: np.array([0, 2, 0])}
    metrics = step_metrics(np.array([2, 6, 0]), outcomes, slots, rewards, slots.tolist())
    assert metrics["dead_prompt_share"] == pytest.approx(2 / 3)
    assert metrics["informative_rollout_share"] == pytest.approx(6 / 8)
    assert metrics["unsolved_share"] == pytest.approx(1 / 3)
    assert metrics["unknown_share"] == pytest.approx(2 / 8), "counted from outcomes, not from rewards"
    assert metrics["reward_prompt_mean"] == pytest.approx((1 + 0.2) / 2)
    assert metrics["reward_rollout_mean"] == pytest.approx(3 / 7)
    share = np.array([0.25, 0.75])
    assert metrics["alloc_entropy"] == pytest.approx(-(share * np.log(share)).sum() / np.log(3))
    assert (metrics["max_n"], metrics["n0_share"], metrics["n1_share"]) == (6, pytest.approx(1 / 3), 0)


def test_weights_per_rollout_are_one_and_per_prompt_level_prompts() -> None:
    slots = np.array([0, 0, 1, 1, 1, 1, 1, 1])
    assert row_weights(slots, "per_rollout").tolist() == [1.0] * 8
    weights = row_weights(slots, "per_prompt")
    assert weights.tolist() == pytest.approx([2, 2] + [2 / 3] * 6)
    assert weights.mean() == pytest.approx(1.0)


def test_an_unknown_weighting_is_named() -> None:
    with pytest.raises(RollwiseError, match="^weighting: .*per_prompt"):
        row_weights(np.array([0]), "prompts")


def test_the_first_wave_gives_an_unbiased_mean_reward_where_all_rollouts_do_not() -> None:
    rng = np.random.default_rng(3)
    coins = [0.1, 0.3, 0.5, 0.9]
    records = []
    for index in range(400):
        step = Step(
            [str(k) for k in range(4)], get_allocator("adaroll", utility="sum_max_reward"), 32, rng=rng, index=index
        )
        while wave := step.next_wave():
            step.observe(*(rollout.result(rng.random() < coins[int(rollout.prompt_id)]) for rollout in wave.rollouts))
        records.append(step.close().metrics)
    first = np.array([metrics["reward_first_wave"] for metrics in records])
    assert first.mean() == pytest.approx(np.mean(coins), abs=4 * first.std() / np.sqrt(len(first)))
    every = np.array([metrics["reward_prompt_mean"] for metrics in records])
    assert abs(every.mean() - np.mean(coins)) > 4 * every.std() / np.sqrt(len(every)), "the bias this metric avoids"
