"""MC-GRPO's advantage: the group's median as the baseline (arXiv 2601.22582)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.advantages.by_group import apply_by_group
from rollwise.types import FloatArray, IntArray


@dataclass(frozen=True)
class MCGRPO:
    """`(r - median) / (MAD + eps)`, times n over the number of rollouts that are not 0 then.

    MAD is the median of `|r - median|`; both are the lower median, a rollout's own reward, as in the authors' code. That
    rollout, the pivot, has advantage 0: of G + 1 rollouts at most G train.

    Rewards of 0 and 1 have MAD 0 whatever the group, and the published form then divides by `eps`: advantages of about
    +-1000. Where MAD is 0 this one divides by the sample standard deviation, as GRPO does, or by `floor` where given.
    On such rewards only the minority is trained on: successes where most fail, failures where most succeed.
    """

    eps: float = 1e-3
    floor: float | None = None
    rescale: bool = True
    name: str = "mc_grpo"

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray:
        """(n,) advantages; shapes and the treatment of unknowns as in `Advantage`."""
        return apply_by_group(self._group, rewards, group_ids, order)

    def _group(self, rewards: FloatArray) -> FloatArray:
        off = rewards - lower_median(rewards)
        mad = lower_median(np.abs(off))
        if self.floor is not None:
            scale = max(mad, self.floor)
        else:
            scale = mad if mad > 0 else float(rewards.std(ddof=1))
        found: FloatArray = off / (scale + self.eps)
        moved = np.count_nonzero(np.abs(found) > 1e-6)
        return found * (len(found) / moved) if self.rescale and moved else found


def lower_median(values: FloatArray) -> float:
    """The middle one of values (k,), the lower of the two where k is even."""
    return float(np.partition(values, (len(values) - 1) // 2)[(len(values) - 1) // 2])
