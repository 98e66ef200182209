"""A generation block made in several waves: what each wave returned, and the one block the trainer trains on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from rollwise.integrations.trl.merge import merge_waves
from rollwise.integrations.trl.rows import Row, cut_rows
from rollwise.integrations.trl.scores import Scores
from rollwise.types import IntArray, StepRecord


class Block:
    """Outputs and scores of a step's waves, on one process."""

    def __init__(self, metrics: Mapping[str, Sequence[float]]) -> None:
        """`metrics` are the trainer's, before the first wave adds to them."""
        self.entries_before = {name: len(values) for name, values in metrics.items()}
        """Entries per metric when the block began."""
        self.stock = False
        """Whether the parent made the whole block in its own layout, so that nothing is left to merge."""
        self._parts: list[dict[str, Any]] = []
        self._places: list[IntArray] = []
        self._scores: list[Scores] = []

    def add(self, part: dict[str, Any], mine: IntArray, scores: Scores) -> None:
        """Take in a wave: the parent's output for `mine` (k,), this process's places in the wave, and all its scores."""
        self._places.append(mine + sum(self.wave_sizes))
        self._parts.append(part)
        self._scores.append(scores)

    @property
    def wave_sizes(self) -> list[int]:
        """Rollouts per wave, all processes together."""
        return [len(scores) for scores in self._scores]

    @property
    def scores(self) -> Scores:
        """Scores of the step, in order of issue."""
        return Scores.join(self._scores)

    def rows(self, ids: Sequence[str], world: int) -> tuple[dict[str, Row], dict[str, int]]:
        """This process's rows by rollout id, and the process of every row, for the step's rollouts `ids` (n,)."""
        own: dict[str, Row] = {}
        lengths = self.scores.lengths
        for part, places in zip(self._parts, self._places, strict=True):
            cut = cut_rows(part, [int(lengths[place]) for place in places])
            own |= {ids[place]: row for place, row in zip(places.tolist(), cut, strict=True)}
        owners: dict[str, int] = {}
        first = 0
        for size in self.wave_sizes:
            owners |= {ids[first + k]: k * world // size for k in range(size)}
            first += size
        return own, owners

    def merge(self, record: StepRecord, pad_token_id: int) -> dict[str, Any]:
        """What the trainer trains on: this process's rows, a prompt's side by side, with the record's advantages."""
        if self.stock:
            return self._parts[0]
        index = np.concatenate(self._places)
        order = np.argsort(record.slots[index], kind="stable")
        output = merge_waves(self._parts, torch.from_numpy(order), pad_token_id)
        output["advantages"] = torch.as_tensor(
            record.advantages[index][order], dtype=torch.float32, device=output["completion_ids"].device
        )
        return output
