"""Advantages for groups of unequal size, checked by hand and against TRL's equal-size formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.advantages import ADVANTAGES, GRPO, DrGRPO, Groups, get_advantage
from rollwise.types import RollwiseError

GRPO_BATCH = ADVANTAGES["grpo_batch"]
CENTRED = ("grpo", "grpo_batch", "dr_grpo", "rloo", "global_baseline", "ms_grpo")
"""Estimators whose advantages sum to zero over a group."""
GROUP_MEAN = {name: ADVANTAGES[name] for name in CENTRED}
PERMUTABLE = [estimator for name, estimator in GROUP_MEAN.items() if name != "ms_grpo"]


def apply(estimator: Any, rewards: list[float], groups: list[Any]) -> np.ndarray:
    size = len(rewards)
    return estimator(np.array(rewards, dtype=float), groups, np.ones((size, 2)), np.arange(size))


def test_unequal_groups_by_hand() -> None:
    rewards = [1, 0, 1, 1, 0, 0, 0, 1]
    groups = ["a", "a", "b", "b", "b", "b", "b", "b"]
    centred = [0.5, -0.5, 0.5, 0.5, -0.5, -0.5, -0.5, 0.5]
    assert apply(DrGRPO(), rewards, groups) == pytest.approx(centred)
    std = {"a": np.sqrt(0.5), "b": np.sqrt(6 * 0.25 / 5)}
    expected = [value / (std[group] + 1e-4) for value, group in zip(centred, groups, strict=True)]
    assert apply(GRPO(), rewards, groups) == pytest.approx(expected)
    whole = np.std(rewards, ddof=1)
    assert apply(GRPO_BATCH, rewards, groups) == pytest.approx([value / (whole + 1e-4) for value in centred])


@given(
    data=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 0.25, np.nan])), min_size=1, max_size=20
    ),
    seed=st.integers(0, 99),
    estimator=st.sampled_from(PERMUTABLE),
)
def test_permuted_rows_give_permuted_advantages_and_groups_sum_to_zero(data: Any, seed: int, estimator: Any) -> None:
    groups, rewards = [row[0] for row in data], [row[1] for row in data]
    plain = apply(estimator, rewards, groups)
    order = np.random.default_rng(seed).permutation(len(data))
    shuffled = apply(estimator, [rewards[k] for k in order], [groups[k] for k in order])
    assert shuffled == pytest.approx(plain[order], abs=1e-9)
    assert np.isfinite(plain).all()
    assert (plain[np.isnan(rewards)] == 0).all()
    for group in set(groups):
        assert plain[[g == group for g in groups]].sum() == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("estimator", GROUP_MEAN.values(), ids=GROUP_MEAN)
def test_singletons_dead_groups_and_all_unknown_groups_have_none(estimator: Any) -> None:
    rewards = [1.0, 0.3, 0.3, 0.3, np.nan, np.nan, 1.0, np.nan, 0.0, 1.0]
    groups = ["one", "dead", "dead", "dead", "void", "void", "half", "half", "live", "live"]
    result = apply(estimator, rewards, groups)
    assert result[:8] == pytest.approx(np.zeros(8), abs=1e-12)
    assert result[8] < 0 < result[9]


def test_an_unknown_reward_does_not_move_the_others() -> None:
    known = apply(GRPO(), [1, 0, 0], ["a"] * 3)
    assert apply(GRPO(), [1, np.nan, 0, 0], ["a"] * 4)[[0, 2, 3]] == pytest.approx(known)


def test_constant_rewards_that_are_not_exact_in_binary_are_dead() -> None:
    groups = Groups.of(np.array([0.1] * 3 + [0.3] * 7), ["a"] * 3 + ["b"] * 7)
    assert not groups.mixed().any()


def test_wrong_lengths_and_infinities_are_errors() -> None:
    with pytest.raises(ValueError, match="2 group ids"):
        Groups.of(np.zeros(3), ["a", "b"])
    with pytest.raises(ValueError, match="infinite"):
        Groups.of(np.array([np.inf]), ["a"])


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(RollwiseError, match="did you mean 'dr_grpo'"):
        get_advantage("drgrpo")
