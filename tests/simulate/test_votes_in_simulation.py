"""Prompts as coins answer too, so that a rule that votes can be simulated."""

from __future__ import annotations

import numpy as np

from rollwise.allocators import get_allocator
from rollwise.simulate.environment import play
from rollwise.step import Step


def test_a_vote_ends_early_where_one_answer_leads() -> None:
    step = Step(["sure", "split"], get_allocator("optpo", most=24), 96, rng=np.random.default_rng(0), n_min=0)
    played = play(step, np.array([1.0, 0.0]), (0, 0))
    assert played.record.counts.tolist() == [4, 24]
    assert {row.answer for row in played.record.rollouts if row.prompt_id == "split"} == {
        "wrong-0",
        "wrong-1",
        "wrong-2",
    }
