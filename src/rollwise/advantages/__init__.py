"""Advantage estimators for groups of unequal size."""

from __future__ import annotations

from rollwise.advantages.base import Advantage, Groups
from rollwise.advantages.dr_grpo import DrGRPO
from rollwise.advantages.grpo import GRPO
from rollwise.advantages.predictive import Predictive
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

ADVANTAGES: dict[str, Advantage] = {
    "grpo": GRPO(),
    "grpo_batch": GRPO(scale="batch", name="grpo_batch"),
    "dr_grpo": DrGRPO(),
    "predictive": Predictive(),
}


def get_advantage(name: str | Advantage) -> Advantage:
    """The estimator of that name (`grpo`, `grpo_batch`, `dr_grpo`, `predictive`), or the estimator itself.

    Raises:
        RollwiseError: for an unknown name.
    """
    if not isinstance(name, str):
        return name
    if name not in ADVANTAGES:
        raise RollwiseError(f"advantage: no estimator {name!r}; {nearest(name, ADVANTAGES)}")
    return ADVANTAGES[name]


__all__ = ["ADVANTAGES", "GRPO", "Advantage", "DrGRPO", "Groups", "Predictive", "get_advantage"]
