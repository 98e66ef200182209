"""What a run may spend, and what of it is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollwise.lab.training import Progress
from rollwise.types import RollwiseError

from .support import TRAINING


@pytest.mark.parametrize(
    ("until", "tokens", "total", "left"),
    [("rollouts", None, 96, 46), ("steps", None, 4, 24), ("tokens", 200, 800, 50)],
)
def test_a_run_ends_by_rollouts_steps_or_tokens(until: str, tokens: int | None, total: int, left: int) -> None:
    training = replace(TRAINING, until=until, tokens=tokens)
    assert training.total == total
    # by tokens: 400 of 800 are left, at 8 a rollout so far
    assert Progress(step=2, spent=50, tokens=400).rollouts_left(training) == left
    assert Progress().rollouts_left(training) >= 24


def test_the_last_tokens_make_one_rollout_at_least() -> None:
    training = replace(TRAINING, until="tokens", tokens=200)
    assert Progress(step=4, spent=100, tokens=799).rollouts_left(training) == 1


def test_tokens_are_given_where_they_end_the_run_and_nowhere_else() -> None:
    with pytest.raises(RollwiseError, match="tokens: None a step until tokens; give both"):
        replace(TRAINING, until="tokens")
    with pytest.raises(RollwiseError, match="tokens: 200 a step until rollouts; give both"):
        replace(TRAINING, tokens=200)
