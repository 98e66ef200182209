"""Copies of a prompt: one group for all, or one each."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.allocators import Uniform
from rollwise.groups import name_groups
from rollwise.step import Step
from rollwise.types import RollwiseError, StepRecord


def close(copies: bool) -> tuple[Step, StepRecord]:
    step = Step(
        ["a", "b", "a"], Uniform(), 12, rng=np.random.default_rng(0), copies=copies, waves=1, advantage="dr_grpo"
    )
    while wave := step.next_wave():
        step.observe(*(rollout.result(k < 5) for k, rollout in enumerate(wave.rollouts)))
    return step, step.close()


def test_copies_share_one_group_or_have_their_own() -> None:
    _, merged = close(False)
    assert merged.prompt_ids == ("a", "b")
    assert merged.counts.tolist() == [6, 6]
    step, own = close(True)
    assert own.prompt_ids == ("a", "b", "a")
    assert own.counts.tolist() == [4, 4, 4]
    assert own.successes.tolist() == [4, 1, 0]
    assert [step.slot_of[r.group_id] for r in own.rollouts] == own.slots.tolist()
    assert own.advantages.tolist() == [0.0] * 4 + [0.75, -0.25, -0.25, -0.25] + [0.0] * 4
    assert {r.prompt_id for r in own.rollouts if r.group_id == "a~2"} == {"a"}


def test_a_prompt_named_like_a_copy_is_refused() -> None:
    assert name_groups(["a", "b", "a", "a"]) == ("a", "b", "a~2", "a~3")
    with pytest.raises(RollwiseError, match="'a~2'"):
        name_groups(["a", "a", "a~2"])
