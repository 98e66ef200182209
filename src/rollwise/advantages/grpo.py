"""GRPO's advantage for groups of any size (arXiv 2402.03300)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rollwise.advantages.base import Groups
from rollwise.types import FloatArray, IntArray


@dataclass(frozen=True)
class GRPO:
    """`(r - mean of its group) / (std + eps)`.

    `scale` says whose standard deviation: of the rollout's own `group`, or of all known rewards of the `batch`. Both
    TRL and verl use the sample deviation (`ddof` 1); `eps` is 1e-4 in TRL and 1e-6 in verl.
    """

    scale: Literal["group", "batch"] = "group"
    ddof: int = 1
    eps: float = 1e-4
    name: str = "grpo"

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray:
        """(n,) advantages; shapes and the treatment of unknowns as in `Advantage`."""
        groups = Groups.of(rewards, group_ids)
        if self.scale == "group":
            std = groups.std(self.ddof)[groups.index]
        else:
            known = np.asarray(rewards, dtype=np.float64)[groups.known]
            std = np.full(len(group_ids), known.std(ddof=self.ddof) if len(known) > self.ddof else 0.0)
        return groups.centred(rewards) / (std + self.eps)
