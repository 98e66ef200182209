"""The advantage check tells an estimator that breaks a promise which one it breaks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollwise.advantages import DrGRPO, Groups
from rollwise.testing import check_advantage


class Estimator:
    """Reward minus the group's mean, broken in one place by `twist`."""

    name = "twisted"

    def __init__(self, twist: Any = None, check: bool = True) -> None:
        self.twist, self.check, self.calls = twist, check, 0

    def __call__(self, rewards: Any, group_ids: Any, beliefs: Any, order: Any) -> Any:
        if not self.check:
            with np.errstate(invalid="ignore"):
                return np.nan_to_num(rewards - np.nanmean(rewards) if len(rewards) else rewards, posinf=0)
        self.calls += 1
        found = Groups.of(rewards, group_ids).centred(rewards)
        return found if self.twist is None else self.twist(self, found, rewards, group_ids)


def scribble(estimator: Any, found: Any, rewards: Any, groups: Any) -> Any:
    rewards[:] = 0
    return found


def test_a_good_estimator_passes() -> None:
    check_advantage(Estimator())
    check_advantage(DrGRPO())


@pytest.mark.parametrize(
    ("twist", "words"),
    [
        (lambda e, found, r, g: found[:-1], "shape"),
        (lambda e, found, r, g: found / 0 if len(found) else found, "not finite"),
        (lambda e, found, r, g: found + e.calls, "two answers"),
        (lambda e, found, r, g: found + 1, "unknown reward must have advantage 0"),
        (lambda e, found, r, g: found * len(found), "unknown rewards move the others"),
        (lambda e, found, r, g: found * np.arange(len(found)), "permuted rows|unknown rewards move"),
        (lambda e, found, r, g: found * len(str(g[0])) if g else found, "permuted rows|called|move the others"),
        (scribble, "changes its inputs"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_promise_is_named(twist: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_advantage(Estimator(twist))


def test_faulty_input_must_be_refused() -> None:
    with pytest.raises(AssertionError, match="must raise ValueError"):
        check_advantage(Estimator(check=False))


def test_a_name_is_needed() -> None:
    with pytest.raises(AssertionError, match="^name"):
        check_advantage(lambda rewards, groups, beliefs, order: rewards)
