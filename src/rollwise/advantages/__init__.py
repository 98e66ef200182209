"""Advantage estimators for groups of unequal size."""

from __future__ import annotations

from typing import Any

from rollwise.advantages.base import Advantage, Groups
from rollwise.advantages.bayesian import Bayesian
from rollwise.advantages.dr_grpo import DrGRPO
from rollwise.advantages.global_baseline import GlobalBaseline
from rollwise.advantages.grpo import GRPO
from rollwise.advantages.krpo import KRPO
from rollwise.advantages.mc_grpo import MCGRPO
from rollwise.advantages.ms_grpo import MSGRPO
from rollwise.advantages.predictive import Predictive
from rollwise.advantages.rloo import RLOO
from rollwise.imports import load_function
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

ADVANTAGES: dict[str, Advantage] = {
    "grpo": GRPO(),
    "grpo_batch": GRPO(scale="batch", name="grpo_batch"),
    "dr_grpo": DrGRPO(),
    "predictive": Predictive(),
    "rloo": RLOO(),
    "mc_grpo": MCGRPO(),
    "krpo": KRPO(),
    "ms_grpo": MSGRPO(),
    "global_baseline": GlobalBaseline(),
    "bayesian": Bayesian(),
    "bayesian_constant": Bayesian(form="constant", name="bayesian_constant"),
}


def get_advantage(name: str | Advantage) -> Advantage:
    """The estimator of that name, one of one's own by its address `package.module:name`, or the estimator itself.

    At an address may stand an estimator, or a class that makes one without settings.

    Raises:
        RollwiseError: for an unknown name, or an address that holds no estimator.
    """
    if not isinstance(name, str):
        return name
    if ":" in name:
        found: Any = load_function(name, "advantage")
        # an object without a __name__ comes back as a function that wraps it
        estimator = found() if isinstance(found, type) else getattr(found, "__wrapped__", found)
        if not isinstance(getattr(estimator, "name", None), str):
            raise RollwiseError(f"advantage: {name} has no name; give the estimator one, such as name = 'mine'")
        return estimator
    if name not in ADVANTAGES:
        raise RollwiseError(f"advantage: no estimator {name!r}; {nearest(name, ADVANTAGES)}, or package.module:name")
    return ADVANTAGES[name]


__all__ = [
    "ADVANTAGES",
    "GRPO",
    "KRPO",
    "MCGRPO",
    "MSGRPO",
    "RLOO",
    "Advantage",
    "Bayesian",
    "DrGRPO",
    "GlobalBaseline",
    "Groups",
    "Predictive",
    "get_advantage",
]
