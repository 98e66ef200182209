"""The baseline is the belief held before the rollout, so every rollout has an advantage, alone or not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rollwise.advantages import Predictive, get_advantage
from rollwise.allocators import Uniform
from rollwise.step import Step


def test_the_baseline_is_the_mean_of_the_belief_at_issue() -> None:
    beliefs = np.array([[1, 1], [3, 1], [2, 6], [1, 1]])
    found = Predictive()(np.array([1, 0, 1, np.nan]), ["a", "a", "b", "b"], beliefs, np.arange(4))
    assert found == pytest.approx([0.5, -0.75, 0.75, 0.0])


def test_a_group_of_one_and_a_dead_group_have_advantages() -> None:
    found = Predictive()(np.array([1.0, 0.0, 0.0]), ["alone", "dead", "dead"], np.ones((3, 2)), np.arange(3))
    assert found.tolist() == [0.5, -0.5, -0.5]


def test_it_is_chosen_by_name_and_sees_the_belief_of_its_wave() -> None:
    assert get_advantage("predictive") == Predictive()
    rng = np.random.default_rng(0)
    step = Step(["a"], Uniform(), 4, rng=rng, waves=2, prior=(2.0, 2.0), advantage="predictive")
    while wave := step.next_wave():
        step.observe(*(rollout.result(1) for rollout in wave.rollouts))
    assert step.close().advantages == pytest.approx([0.5, 0.5, 1 - 4 / 6, 1 - 4 / 6])


@pytest.mark.parametrize("beliefs", [np.ones((2, 3)), np.ones((3, 2)), np.zeros((2, 2)), np.full((2, 2), np.nan)])
def test_beliefs_that_are_none_are_refused(beliefs: np.ndarray) -> None:
    with pytest.raises(ValueError, match="^beliefs: "):
        Predictive()(np.zeros(2), ["a", "b"], beliefs, np.arange(2))


def test_infinite_rewards_are_refused() -> None:
    with pytest.raises(ValueError, match="infinite"):
        Predictive()(np.array([np.inf]), ["a"], np.ones((1, 2)), np.arange(1))


@pytest.mark.parametrize(("p", "worth"), [(0.02, 1.9), (0.1, 5.1), (0.5, 7.3)])
def test_under_a_flat_prior_it_is_noisy_in_the_tails(p: float, worth: float) -> None:
    """Rollouts it is worth out of 8, `w^2 pq / E[sum of A^2]`; the group mean is worth 7 at every rate."""
    squares = 0.0
    for outcomes in itertools.product([0.0, 1.0], repeat=8):
        r = np.array(outcomes)
        before = np.cumsum(r) - r
        beliefs = np.stack([1 + before, 1 + np.arange(8) - before], axis=1)
        advantages = Predictive()(r, ["g"] * 8, beliefs, np.arange(8))
        squares += p ** r.sum() * (1 - p) ** (8 - r.sum()) * (advantages**2).sum()
    assert 8**2 * p * (1 - p) / squares == pytest.approx(worth, abs=0.05)
