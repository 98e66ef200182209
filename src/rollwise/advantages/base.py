"""The advantage contract: from the rewards of a step to one advantage per rollout, grouped by id and never by position."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from rollwise.types import FloatArray, IntArray


@runtime_checkable
class Advantage(Protocol):
    """What each rollout's advantage is, for groups of any size. Pure.

    `rewards` (n,) holds NaN where unknown, `group_ids` (n,) names the group, `beliefs` (n, 2) the Beta each rollout was
    issued under, `order` (n,) the order of issue. Unknown rewards get advantage 0 and take no part in any statistic;
    so does a group of one known reward, which has no baseline.
    """

    @property
    def name(self) -> str:
        """How settings and logs call it."""
        ...

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray: ...


@dataclass(frozen=True)
class Groups:
    """Statistics of the known rewards by group; K groups over n rewards.

    `index` (n,) is each row's group, `known` (n,) marks finite rewards, `counts`, `means` and `spread` (K,) the number,
    mean and sum of squared deviations of the known rewards.
    """

    index: IntArray
    known: np.ndarray
    counts: IntArray
    means: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, rewards: FloatArray, group_ids: Sequence[Hashable]) -> Groups:
        """Group `rewards` (n,) by `group_ids` (n,).

        Raises:
            ValueError: if the lengths differ or a reward is infinite.
        """
        rewards = np.asarray(rewards, dtype=np.float64)
        if rewards.shape != (len(group_ids),):
            raise ValueError(f"rewards: shape {rewards.shape} but {len(group_ids)} group ids")
        if np.isinf(rewards).any():
            raise ValueError("rewards: infinite values; use NaN for unknown")
        slots: dict[Hashable, int] = {}
        index = np.array([slots.setdefault(key, len(slots)) for key in group_ids], dtype=np.int64)
        known = ~np.isnan(rewards)
        filled = np.where(known, rewards, 0.0)
        counts = np.bincount(index, weights=known, minlength=len(slots)).astype(np.int64)
        means = np.bincount(index, weights=filled, minlength=len(slots)) / np.maximum(counts, 1)
        deviation = np.where(known, rewards - means[index] if len(index) else rewards, 0.0)
        spread: FloatArray = np.bincount(index, weights=deviation**2, minlength=len(slots)).astype(np.float64)
        return cls(index, known, counts, means, spread)

    def centred(self, rewards: FloatArray) -> FloatArray:
        """(n,) reward minus its group's mean; 0 where unknown or alone in its group."""
        usable = self.known & (self.counts[self.index] > 1)
        return np.where(usable, np.where(self.known, rewards, 0.0) - self.means[self.index], 0.0)

    def std(self, ddof: int) -> FloatArray:
        """(K,) standard deviation of each group's known rewards, 0 where fewer than ddof + 1 are known."""
        return np.sqrt(self.spread / np.maximum(self.counts - ddof, 1))

    def mixed(self) -> np.ndarray:
        """(K,) whether the group's known rewards differ, so that it carries a gradient."""
        scale = np.abs(self.means) + 1.0
        return self.std(0) > 1e-9 * scale
