"""KRPO's advantage: a Kalman filter over the rewards of a group as its baseline (arXiv 2505.07527)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.advantages.by_group import apply_by_group
from rollwise.types import FloatArray, IntArray


@dataclass(frozen=True)
class KRPO:
    """`(r_j - x_j) / (sqrt(P_j) + eps)` with x_j, P_j the filtered mean and variance after the j-th reward as issued.

        P <- P + Q,  K = P / (P + R),  x <- x + K (r - x),  P <- (1 - K) P,     from x = 0, P = 1

    Depends on the order, and its scale grows like 10 sqrt(j). Starting from 0 it brings a baseline of its own: a group of
    successes only has a small positive advantage, one of failures 0, and so has a single rollout.
    """

    process_noise: float = 1e-5
    reward_noise: float = 1e-2
    eps: float = 1e-8
    name: str = "krpo"

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray:
        """(n,) advantages; shapes and the treatment of unknowns as in `Advantage`."""
        return apply_by_group(self._group, rewards, group_ids, order, least=1)

    def _group(self, rewards: FloatArray) -> FloatArray:
        found = np.zeros(len(rewards))
        mean, variance = 0.0, 1.0
        for j, reward in enumerate(rewards):
            variance += self.process_noise
            gain = variance / (variance + self.reward_noise)
            mean += gain * (reward - mean)
            variance *= 1 - gain
            found[j] = (reward - mean) / (np.sqrt(variance) + self.eps)
        return found
