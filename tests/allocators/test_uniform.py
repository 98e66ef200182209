"""Uniform allocation: level in any number of waves."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rollwise.allocators import Uniform
from rollwise.allocators.uniform import level_up
from rollwise.step import Step


@given(paid=st.lists(st.integers(0, 9), min_size=1, max_size=8), amount=st.integers(0, 60), cap=st.integers(1, 12))
def test_levelling_up_equals_one_rollout_at_a_time(paid: list[int], amount: int, cap: int) -> None:
    counts = level_up(np.array(paid), np.maximum(cap - np.array(paid), 0), amount)
    served = list(paid)
    for _ in range(amount):
        open_slots = [slot for slot, n in enumerate(served) if n < cap]
        if not open_slots:
            break
        served[min(open_slots, key=lambda slot: served[slot])] += 1
    assert (np.array(paid) + counts).tolist() == served


@given(prompts=st.integers(1, 7), budget=st.integers(14, 60), waves=st.integers(1, 9))
def test_any_number_of_waves_ends_level(prompts: int, budget: int, waves: int) -> None:
    step = Step([str(k) for k in range(prompts)], Uniform(), budget, rng=np.random.default_rng(0), waves=waves)
    while wave := step.next_wave():
        step.observe(*(rollout.result(None) for rollout in wave.rollouts))
    counts = step.close().counts
    assert counts.sum() == budget
    assert counts.max() - counts.min() <= 1
