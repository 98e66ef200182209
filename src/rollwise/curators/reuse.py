"""Response reuse of AR3PO (arXiv 2509.25808): a prompt that failed altogether borrows a correct answer of its own past."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rollwise.curators.base import Curated
from rollwise.curators.rows import outcomes_of, pack_rows, rows_by_group, unpack_rows
from rollwise.types import RollwiseError, StepRecord, StoredRow


class Reuse:
    """In a group without a success, the last failure gives way to the prompt's latest correct rollout of an earlier step.

    Advantages are those of the resulting group; ratios are taken to the borrowed rollout's own log-probabilities.

    Args:
        max_age: steps after which a stored rollout is no longer borrowed; None for no limit.
    """

    name = "reuse"
    needs = frozenset({"payload"})
    weighs_by: frozenset[str] = frozenset()

    def __init__(self, max_age: int | None = None) -> None:
        if max_age is not None and max_age < 1:
            raise RollwiseError(f"reuse max_age: {max_age} steps; give 1 or more, or none")
        self.max_age = max_age
        self._rows: dict[str, StoredRow] = {}
        self._borrowed = 0

    @property
    def held(self) -> frozenset[str]:
        """Ids of the stored rollouts."""
        return frozenset(row.rollout.id for row in self._rows.values())

    def curate(self, record: StepRecord, rng: np.random.Generator) -> Curated:
        """Borrow, then store this step's correct rollouts, the last of each prompt."""
        if self.max_age is not None:
            self._rows = {key: row for key, row in self._rows.items() if record.step - row.step <= self.max_age}
        dropped: list[int] = []
        borrowed: list[StoredRow] = []
        for group, places in rows_by_group(record).items():
            right, wrong = outcomes_of(record, places)
            past = self._rows.get(record.rollouts[places[0]].prompt_id)
            if past is not None and not len(right) and len(wrong):
                dropped.append(int(wrong[-1]))
                borrowed.append(replace(past, rollout=replace(past.rollout, group_id=group), advantage=None))
        for place in outcomes_of(record, record.trained)[0].tolist():
            rollout = record.rollouts[place]
            self._rows[rollout.prompt_id] = StoredRow(rollout, record.step)
        self._borrowed = len(borrowed)
        rows = record.trained[~np.isin(record.trained, dropped)]
        return Curated(rows, np.ones(len(rows)), (*record.stored, *borrowed), regroup=bool(borrowed))

    def metrics(self) -> dict[str, float]:
        """Groups that borrowed in the last step; prompts with a stored rollout."""
        return {"reused_rows": float(self._borrowed), "reuse_stored": float(len(self._rows))}

    def state_dict(self) -> dict[str, Any]:
        return {"rows": pack_rows(self._rows.values()), "borrowed": self._borrowed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._rows = {row.rollout.prompt_id: row for row in unpack_rows(state["rows"])}
        self._borrowed = int(state["borrowed"])
