"""A baseline fixed before the rollout is drawn: the mean of the belief it was issued under."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.advantages.base import Groups
from rollwise.types import FloatArray, IntArray


@dataclass(frozen=True)
class Predictive:
    """`r - a/(a+b)` with the Beta(a, b) at issue; meant for rewards of 0 and 1.

    Unbiased under any stopping rule: a prompt contributes E[n] times the gradient of its success rate, since the baseline
    does not depend on the rollout. A group of one is fine, and so is a group of equal rewards. Noisier than the group mean
    where the belief is uninformed (Beta(1,1) at rate .02: worth 1.9 of 8 rollouts): use it with carried beliefs.
    """

    name: str = "predictive"

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray:
        """(n,) advantages, 0 where the reward is unknown; groups and order do not matter.

        Raises:
            ValueError: an infinite reward, lengths that differ, or beliefs that are not (n, 2) positive numbers.
        """
        known = Groups.of(rewards, group_ids).known
        pairs = np.asarray(beliefs, dtype=np.float64)
        if pairs.shape != (len(known), 2) or not (np.isfinite(pairs).all() and (pairs > 0).all()):
            raise ValueError(f"beliefs: shape {pairs.shape} for {len(known)} rewards; (n, 2) positive numbers")
        baseline = pairs[:, 0] / pairs.sum(axis=1)
        return np.where(known, np.where(known, rewards, 0.0) - baseline, 0.0)
