"""Stored rows as plain data, and the groups of a record that carry a gradient."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from rollwise.types import IntArray, Outcome, Rollout, StepRecord, StoredRow


def pack_rows(rows: Iterable[StoredRow]) -> list[dict[str, Any]]:
    """Rows as JSON-able data."""
    return [
        {
            "step": row.step,
            "advantage": row.advantage,
            **asdict(row.rollout),
            "outcome": row.rollout.outcome.value,
            "belief": list(row.rollout.belief),
        }
        for row in rows
    ]


def unpack_rows(lines: Iterable[dict[str, Any]]) -> list[StoredRow]:
    """The rows that `pack_rows` gave."""
    rows = []
    for line in lines:
        fields = {key: value for key, value in line.items() if key not in ("step", "advantage")}
        fields |= {"outcome": Outcome(fields["outcome"]), "belief": tuple(fields["belief"])}
        rows.append(StoredRow(Rollout(**fields), int(line["step"]), line["advantage"]))
    return rows


def rows_by_group(record: StepRecord) -> dict[str, IntArray]:
    """Places of the rollouts that still train, by group, groups in order of first issue."""
    groups: dict[str, list[int]] = {}
    for place in record.trained.tolist():
        groups.setdefault(record.rollouts[place].group_id, []).append(place)
    return {key: np.array(places, dtype=np.int64) for key, places in groups.items()}


def live_groups(record: StepRecord) -> dict[str, IntArray]:
    """Those groups of `rows_by_group` in which some rollout has an advantage that is not 0."""
    return {key: places for key, places in rows_by_group(record).items() if record.advantages[places].any()}


def outcomes_of(record: StepRecord, places: IntArray) -> tuple[IntArray, IntArray]:
    """Of the rollouts at `places`, the places of the successes and those of the failures."""
    words = np.array([record.rollouts[place].outcome.value for place in places])
    return places[words == Outcome.SUCCESS.value], places[words == Outcome.FAILURE.value]
