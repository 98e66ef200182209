"""Outcomes are read strictly, and a view's digest sees everything in it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from rollwise.allocators import Uniform
from rollwise.step import Step
from rollwise.types import Outcome, Rollout, RollwiseError


@pytest.mark.parametrize("value", [1, 1.0, True, np.int64(1), np.float32(1), np.True_, Outcome.SUCCESS])
def test_one_is_success(value: Any) -> None:
    assert Outcome.of(value) is Outcome.SUCCESS


@pytest.mark.parametrize("value", [0, 0.0, False, np.int64(0), -0.0])
def test_zero_is_failure(value: Any) -> None:
    assert Outcome.of(value) is Outcome.FAILURE


@pytest.mark.parametrize("value", [None, float("nan"), np.float32("nan")])
def test_none_and_nan_are_unknown(value: Any) -> None:
    assert Outcome.of(value) is Outcome.UNKNOWN


@pytest.mark.parametrize("value", [float("inf"), -1, 0.5, 2, "1", [1], {}])
def test_anything_else_is_an_error_that_names_the_source(value: Any) -> None:
    with pytest.raises(RollwiseError, match="^grader returned"):
        Outcome.of(value, source="grader")


def test_a_result_has_a_reward_by_default_only_where_known() -> None:
    rollout = Rollout("0-0", "p", "p", 0)
    assert [rollout.result(outcome).reward for outcome in (1, 0, None)] == [1.0, 0.0, None]
    assert rollout.result(0, reward=0.3).reward == 0.3


def test_the_digest_changes_with_every_field_of_the_view() -> None:
    view = Step(["a", "b"], Uniform(), 8, rng=np.random.default_rng(0)).view
    for field in fields(view):
        value = getattr(view, field.name)
        other = ("a", "c") if isinstance(value, tuple) else np.ones(2) if value is None else value + 1
        assert replace(view, **{field.name: other}).digest() != view.digest(), field.name
    assert view.digest() == Step(["a", "b"], Uniform(), 8, rng=np.random.default_rng(1)).view.digest()
