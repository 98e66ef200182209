"""Dr.GRPO's advantage: the group mean is taken off and nothing is divided (arXiv 2503.20783)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from rollwise.advantages.base import Groups
from rollwise.types import FloatArray, IntArray


@dataclass(frozen=True)
class DrGRPO:
    """`r - mean of its group`."""

    name: str = "dr_grpo"

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray:
        """(n,) advantages; shapes and the treatment of unknowns as in `Advantage`."""
        return Groups.of(rewards, group_ids).centred(rewards)
