"""The curator contract: which rollouts of a closed step train, with what weight, and which earlier ones train again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rollwise.types import FloatArray, IntArray, StepRecord, StoredRow

NEEDS = ("logprob", "payload")
"""What a lever may ask of the trainer: `logprob`, that every `Rollout.logprob` is the summed log-probability at
generation; `payload`, that tokens and log-probabilities of the rollouts in `held` are kept, to train again."""


@dataclass(frozen=True)
class Curated:
    """What a curator decided.

    `rows` (k,) are places in `record.rollouts`, ascending, of the rollouts that train, and `weights` (k,) the factor of
    each, at least 0; `stored` are rollouts of earlier steps. With `regroup`, advantages are computed anew over these rows
    only, so a group's statistics are those of what was kept; else they stay as they were over the whole step.
    """

    rows: IntArray
    weights: FloatArray
    stored: tuple[StoredRow, ...] = ()
    regroup: bool = False


@runtime_checkable
class Curator(Protocol):
    """Decides what trains, once a step is closed. Deterministic, given its state and the generator.

    `weighs_by` names what its weights depend on (`success_rate`, `confidence`), so that two levers that weigh for the same
    thing can be pointed out. Several curators are applied one after the other: each finds in the record what those before
    it left (`record.trained`, `record.advantages`, `record.stored`) and adds to that or takes from it.
    """

    name: str
    needs: frozenset[str]
    weighs_by: frozenset[str]

    @property
    def held(self) -> frozenset[str]:
        """Ids of earlier rollouts it may ask for, the latest step's included; the trainer keeps their tokens."""
        ...

    def curate(self, record: StepRecord, rng: np.random.Generator) -> Curated:
        """What trains. No row and nothing stored makes the step idle: paid for, without an update.

        Never more rows than were generated: `len(rows) + len(stored) <= len(record.rollouts)`, unless the curator
        collects several steps for one update.
        """
        ...

    def metrics(self) -> dict[str, float]:
        """Numbers worth logging about the last step's decision; may be empty."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that later decisions depend on, as JSON-able data or arrays."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; the same decisions follow."""
        ...


def keep_all(record: StepRecord) -> Curated:
    """Everything trains as before."""
    return Curated(record.trained, np.ones(len(record.trained)), record.stored)
