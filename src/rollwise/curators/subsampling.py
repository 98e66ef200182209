"""Curators that generate many and train few: PODS, AERO's and Reinforce-Ada's down-sampling. None carries anything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from rollwise.curators.base import Curated
from rollwise.curators.rows import outcomes_of, rows_by_group
from rollwise.types import FloatArray, IntArray, RollwiseError, StepRecord


class Subsampling(ABC):
    """What the three share: each group keeps some of its rollouts, chosen by `pick`, with weight 1."""

    name = "subsampling"
    needs: frozenset[str] = frozenset()
    weighs_by: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    regroup = False

    def __init__(self) -> None:
        self._dropped = 0

    @abstractmethod
    def pick(self, record: StepRecord, places: IntArray, rng: np.random.Generator) -> IntArray:
        """Which rollouts of the group at `places` (k,) train."""

    def curate(self, record: StepRecord, rng: np.random.Generator) -> Curated:
        """The picks of all groups, in order of issue."""
        picked = [self.pick(record, places, rng) for places in rows_by_group(record).values()]
        rows = np.sort(np.concatenate(picked)).astype(np.int64) if picked else record.trained
        self._dropped = len(record.trained) - len(rows)
        return Curated(rows, np.ones(len(rows)), record.stored, self.regroup)

    def metrics(self) -> dict[str, float]:
        """Rollouts of the last step that were left out."""
        return {"subsampled_out": float(self._dropped)}

    def state_dict(self) -> dict[str, Any]:
        return {"dropped": self._dropped}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._dropped = int(state["dropped"])


class PODS(Subsampling):
    """The m of a group's n rollouts whose rewards vary most (arXiv 2504.13818): i best and m - i worst, for the best i.

    Advantages are those of the subset. Rollouts without a reward are left out.

    Args:
        share: m / n; at least two rollouts stay.
        keep: m itself, in place of the share.
    """

    name = "pods"
    regroup = True

    def __init__(self, share: float = 0.25, keep: int | None = None) -> None:
        super().__init__()
        if not 0 < share <= 1:
            raise RollwiseError(
                f"pods share: {share} is out of range; give a number above 0 and up to 1, such as 0.25"
            )
        if keep is not None and keep < 2:
            raise RollwiseError(f"pods keep: {keep} rollouts of a group have no baseline; give 2 or more")
        self.share, self.keep = share, keep

    def pick(self, record: StepRecord, places: IntArray, rng: np.random.Generator) -> IntArray:
        rewards = np.array([record.rollouts[place].reward for place in places], dtype=np.float64)
        known = np.flatnonzero(~np.isnan(rewards))
        wanted = self.keep or max(2, round(self.share * len(places)))
        return places[known[spread_most(rewards[known], wanted)]]


class AEROSubsampling(Subsampling):
    """AERO (arXiv 2602.14338): of a hard mixed group all successes and as many failures; of a uniform one, `dead_keep`.

    A mixed group is hard below a success rate of one half; others stay whole. Advantages stay those of the whole group.

    Args:
        ratio: k, failures kept per success.
        dead_keep: rollouts kept of a group whose outcomes are all equal (they train where the estimator gives them an
            advantage, as `bayesian` does).
    """

    name = "aero"

    def __init__(self, ratio: float = 1.0, dead_keep: int = 4) -> None:
        super().__init__()
        if not ratio > 0 or dead_keep < 0:
            raise RollwiseError(f"aero: ratio {ratio}, dead_keep {dead_keep}; give a positive number, and 0 or more")
        self.ratio, self.dead_keep = ratio, dead_keep

    def pick(self, record: StepRecord, places: IntArray, rng: np.random.Generator) -> IntArray:
        right, wrong = outcomes_of(record, places)
        if not len(right) or not len(wrong):
            return choose(np.concatenate([right, wrong]), self.dead_keep, rng)
        if 2 * len(right) >= len(right) + len(wrong):
            return places
        return np.concatenate([right, choose(wrong, round(self.ratio * len(right)), rng)])


class BalancedSubsampling(Subsampling):
    """Reinforce-Ada (arXiv 2510.04996): `keep` rollouts of a group, half successes and half failures where there are any.

    What one side lacks, the other gives. Advantages stay those of the whole group: its baseline knows all samples.

    Args:
        keep: n.
    """

    name = "balanced"

    def __init__(self, keep: int = 4) -> None:
        super().__init__()
        if keep < 2:
            raise RollwiseError(f"balanced keep: {keep} rollouts per group; give 2 or more")
        self.keep = keep

    def pick(self, record: StepRecord, places: IntArray, rng: np.random.Generator) -> IntArray:
        right, wrong = outcomes_of(record, places)
        half = self.keep // 2
        few = min(len(right), max(half, self.keep - len(wrong)))
        return np.concatenate([choose(right, few, rng), choose(wrong, self.keep - few, rng)])


def spread_most(rewards: FloatArray, count: int) -> IntArray:
    """(count,) places of the rewards (n,) of largest variance: the i largest and count - i smallest, for the best i.

    Of equal rewards the first issued come first; of equal variances the most balanced split is taken.
    """
    n = len(rewards)
    if count >= n:
        return np.arange(n)
    order = np.argsort(rewards, kind="stable")
    ascending = rewards[order]
    low, low2 = (np.concatenate([[0.0], np.cumsum(ascending**power)]) for power in (1, 2))
    high, high2 = (np.concatenate([[0.0], np.cumsum(ascending[::-1] ** power)]) for power in (1, 2))
    best = np.arange(count + 1)
    total, squares = high[best] + low[count - best], high2[best] + low2[count - best]
    variance = squares / count - (total / count) ** 2
    ties = np.flatnonzero(variance >= variance.max() - 1e-12)
    i = int(ties[np.argmin(np.abs(ties - count / 2))])
    return np.sort(np.concatenate([order[: count - i], order[n - i :]]))


def choose(places: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """`count` of the places, each subset equally likely; all where there are no more."""
    if count >= len(places):
        return places
    return np.sort(rng.choice(places, size=count, replace=False))
