"""Training without labels: nothing says what a success is until a group has voted, and the vote is what trains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rollwise.allocators.base import Allocator
from rollwise.integrations.trl import logs
from rollwise.integrations.trl.config import RollwiseGRPOConfig
from rollwise.integrations.trl.outcomes import OutcomeReader
from rollwise.integrations.trl.scores import Scores
from rollwise.methods import check_answers
from rollwise.tasks.answers import read_answers
from rollwise.types import FloatArray, Outcome, StepRecord

COLUMN = "agreement"
"""The reward column of a run without reward functions: 1 for a rollout that agrees with its group's leading answer."""


def agreement(completions: Sequence[Any], **columns: Any) -> list[float]:
    """Stands where TRL asks for a reward function; `write_agreement` puts the vote's verdict in its place."""
    return [0.0] * len(completions)


class Unjudged(OutcomeReader):
    """Every outcome is unknown while a step is made."""

    decides = False

    def __init__(self) -> None:
        super().__init__(None, None, ())
        self.source = "the vote"

    def read(self, columns: FloatArray, summed: FloatArray, own: FloatArray | None) -> list[Outcome]:
        """Unknown, n times."""
        return [Outcome.UNKNOWN] * len(summed)


def outcome_reader(
    args: RollwiseGRPOConfig, outcome: str | Callable[..., Any] | None, names: Sequence[str]
) -> OutcomeReader:
    """What reads outcomes of a run; under `labels="majority"` only where one was named, to look on."""
    named = outcome or args.outcome
    if args.labels == "majority" and named is None and args.outcome_threshold is None:
        return Unjudged()
    reader = OutcomeReader(named, args.outcome_threshold, names)
    reader.decides = args.labels != "majority"
    return reader


def answer_reader(args: RollwiseGRPOConfig, rule: Allocator) -> Callable[[Any], str] | None:
    """What finds the answers of completions, where the labels or the rule need them.

    Raises:
        RollwiseError: a way to find answers that nothing reads.
    """
    check_answers(args.answers, args.labels, rule)
    needed = args.labels == "majority" or "answer" in getattr(rule, "needs", ())
    return read_answers(args.answers) if needed else None


def write_agreement(tables: Any, scores: Scores, record: StepRecord) -> Scores:
    """The scores as the vote left them, and the completions table with them; `tables` are the trainer's."""
    rewards = np.array([np.nan if row.reward is None else row.reward for row in record.rollouts], dtype=np.float64)
    own = COLUMN in tables["rewards"]
    if own:
        logs.replace_last(tables["rewards"][COLUMN], rewards.tolist())
    return scores.voted(rewards, own)
