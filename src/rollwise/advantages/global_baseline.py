"""Reinforce-Ada's advantage: against the mean of everything drawn for the prompt, nothing divided (arXiv 2510.04996)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from rollwise.advantages.base import Groups
from rollwise.types import FloatArray, IntArray


@dataclass(frozen=True)
class GlobalBaseline:
    """`r - mean over all rounds of its prompt`, of which few train afterwards.

    A step computes advantages over every rollout paid for, before a curator keeps some, so on a prompt with one group this
    is Dr.GRPO's formula; the name says that statistics are meant to come from everything, and a curator that computes
    advantages anew over what it keeps must not be put after it.
    """

    name: str = "global_baseline"

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray:
        """(n,) advantages; shapes and the treatment of unknowns as in `Advantage`."""
        return Groups.of(rewards, group_ids).centred(rewards)
