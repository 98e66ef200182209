"""TRL's ways of turning several reward columns into one advantage, by group id instead of by position."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.advantages import GRPO, Groups
from rollwise.types import FloatArray, IntArray


def sum_rewards(columns: FloatArray, weights: FloatArray) -> FloatArray:
    """(n,) weighted sum of the reward columns (n, F); an abstention counts 0, a row of abstentions only is NaN."""
    total = np.nansum(columns * weights, axis=1)
    return np.where(np.isnan(columns).all(axis=1), np.nan, total)


@dataclass(frozen=True)
class NormaliseThenSum:
    """TRL's `multi_objective_aggregation="normalize_then_sum"` for groups of any size.

    Each column is centred and scaled within its group, the columns are summed with `weights`, and the sum is
    centred and scaled over the batch. `columns` is (n, F), in the order of the step's rows.
    """

    columns: FloatArray
    weights: FloatArray
    eps: float = 1e-4
    name: str = "normalize_then_sum"

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray:
        """(n,) advantages; a row on which every function abstained, or which is alone in its group, gets 0."""
        by_group = GRPO(eps=self.eps)
        scaled = np.stack([by_group(column, group_ids, beliefs, order) for column in self.columns.T], axis=1)
        scaled = np.where(np.isnan(self.columns), np.nan, scaled)
        summed = sum_rewards(scaled, self.weights)
        known = summed[~np.isnan(summed)]
        std = known.std(ddof=1) if len(known) > 1 else 0.0
        centred = (summed - known.mean()) / (std + self.eps) if len(known) else summed
        groups = Groups.of(summed, group_ids)
        return np.where(groups.known & (groups.counts[groups.index] > 1), centred, 0.0)
