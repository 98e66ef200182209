"""CoDaPO's weights (arXiv 2606.07950): groups count by how confident the model is and how near to one half it succeeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollwise.curators.base import Curated
from rollwise.curators.rows import outcomes_of, rows_by_group
from rollwise.types import IntArray, RollwiseError, StepRecord

OFFSET = 0.1
"""Added to every value in the published code; the paper's formula has 0."""


class ConfidenceWeights:
    """Multiplies a group's advantages by `v + offset`, see `group_value`.

    Args:
        offset: what a group of value 0 still counts (its advantages are 0 anyway where all outcomes are equal).
    """

    name = "codapo"
    needs = frozenset({"logprob"})
    weighs_by = frozenset({"success_rate", "confidence"})
    held: frozenset[str] = frozenset()

    def __init__(self, offset: float = OFFSET) -> None:
        if not 0 <= offset < np.inf:
            raise RollwiseError(f"codapo offset: {offset}; give 0 (the paper) or more, such as 0.1 (its code)")
        self.offset = offset
        self._mean = 0.0

    def curate(self, record: StepRecord, rng: np.random.Generator) -> Curated:
        """Every row stays; stored rows keep the weight they were made with."""
        weights = np.ones(len(record.rollouts))
        for places in rows_by_group(record).values():
            weights[places] = group_value(record, places) + self.offset
        kept = weights[record.trained]
        self._mean = float(kept.mean()) if len(kept) else 0.0
        return Curated(record.trained, kept, record.stored)

    def metrics(self) -> dict[str, float]:
        """Mean weight of the last step's rows."""
        return {"codapo_weight": self._mean}

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self._mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._mean = float(state["mean"])


def group_value(record: StepRecord, places: IntArray) -> float:
    """v = conf * (1 - 4 (d - 1/2)^2) = conf * 4 p (1-p) of the group at `places` (k,), within [0, 1].

    conf = exp(mean over its rollouts of their mean log-probability per token), d = 1 - p the share that failed, of the
    rollouts with a known outcome; 0 where none has.

    Raises:
        RollwiseError: a rollout without log-probability.
    """
    right, wrong = outcomes_of(record, places)
    known = len(right) + len(wrong)
    if not known:
        return 0.0
    means = []
    for place in np.concatenate([right, wrong]).tolist():
        rollout = record.rollouts[place]
        if rollout.logprob is None:
            raise RollwiseError(f"codapo: rollout {rollout.id} has no logprob; pass result(..., logprob=...)")
        means.append(rollout.logprob / max(1, rollout.tokens))
    p = len(right) / known
    return float(np.exp(np.mean(means)) * 4 * p * (1 - p))
