"""RLOO: each rollout against the mean of the others of its group (arXiv 2402.14740)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.advantages.base import Groups
from rollwise.types import FloatArray, IntArray


@dataclass(frozen=True)
class RLOO:
    """`r - mean of the others` = n / (n-1) times (r - mean of its group).

    The baseline does not depend on the rollout itself, so at a fixed n a prompt's own gradient is estimated without bias:
    its effective weight is n for every success rate.
    """

    name: str = "rloo"

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray:
        """(n,) advantages; shapes and the treatment of unknowns as in `Advantage`."""
        groups = Groups.of(rewards, group_ids)
        known = groups.counts[groups.index]
        return groups.centred(rewards) * (known / np.maximum(known - 1, 1))
