"""AERO's Bayesian baseline: groups whose rewards are all equal still get an advantage (arXiv 2602.14338)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rollwise.advantages.base import Groups
from rollwise.advantages.grpo import GRPO
from rollwise.types import FloatArray, IntArray


@dataclass(frozen=True)
class Bayesian:
    """GRPO's advantage for mixed groups; for a group of c successes in n that are all equal, by u = (c + a) / (n + a + b):

    * `posterior`: (r - u) / sqrt(u (1-u)), the reward in units of a Bernoulli's deviation;
    * `constant`: 2 u - 1 for every row, as a third party's notes of the paper have it;
    * `off`: 0, which is GRPO.

    c = 0 of 4 gives -0.4472, -0.6667 and 0 with a = b = 1. Rewards other than 0 and 1 that are all equal keep 0. A group of
    one counts as equal, the baseline being the prior's as much as the group's.
    """

    form: Literal["posterior", "constant", "off"] = "posterior"
    a: float = 1.0
    b: float = 1.0
    ddof: int = 1
    eps: float = 1e-4
    name: str = "bayesian"

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray:
        """(n,) advantages; shapes and the treatment of unknowns as in `Advantage`."""
        mixed = GRPO(ddof=self.ddof, eps=self.eps)(rewards, group_ids, beliefs, order)
        if self.form == "off":
            return mixed
        groups = Groups.of(rewards, group_ids)
        binary = ~groups.mixed() & ((groups.means == 0) | (groups.means == 1)) & (groups.counts > 0)
        won = np.where(binary, groups.means, 0.0)
        u = (won * groups.counts + self.a) / (groups.counts + self.a + self.b)
        value = 2 * u - 1 if self.form == "constant" else (won - u) / np.sqrt(u * (1 - u))
        return np.where(groups.known & binary[groups.index], value[groups.index], mixed)
