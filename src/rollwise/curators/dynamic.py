"""DAPO's dynamic sampling (arXiv 2503.14476): no update before a whole batch of groups with a gradient is there."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rollwise.curators.base import Curated
from rollwise.curators.rows import live_groups, outcomes_of, pack_rows, unpack_rows
from rollwise.types import IntArray, RollwiseError, StepRecord, StoredRow


class DynamicSampling:
    """Drops dead groups and waits for `groups` live ones, over several steps if need be; a step without update is idle.

    Nothing is updated while it waits, so what it holds stays on-policy. Every step is paid for. Surplus groups are dropped,
    as published. After `rounds` steps it trains on what there is; with `rounds=1` an update costs one step's budget, and
    the only difference to plain training is that dead groups are left out of the loss's average.

    Args:
        groups: live groups of an update; by default as many as the step has groups.
        rounds: most steps for one update.
        live_by: `advantage`, a group is live where some rollout has one; `outcome`, as published, where beside that some
            succeeded and some failed (so one whose rewards differ by a penalty on length alone is dead).
    """

    name = "dynamic"
    needs = frozenset({"payload"})
    weighs_by: frozenset[str] = frozenset()

    def __init__(
        self, groups: int | None = None, rounds: int = 10, live_by: Literal["advantage", "outcome"] = "advantage"
    ) -> None:
        if (groups is not None and groups < 1) or rounds < 1:
            raise RollwiseError(f"dynamic: groups {groups}, rounds {rounds}; give 1 or more")
        if live_by not in ("advantage", "outcome"):
            raise RollwiseError(f"dynamic live_by: no {live_by!r}; valid: advantage, outcome")
        self.groups, self.rounds, self.live_by = groups, rounds, live_by
        self._waiting: list[StoredRow] = []
        self._round = 0
        self._last = {"dynamic_rounds": 0.0, "dynamic_surplus": 0.0}

    @property
    def held(self) -> frozenset[str]:
        """Ids of the rollouts that wait."""
        return frozenset(row.rollout.id for row in self._waiting)

    def curate(self, record: StepRecord, rng: np.random.Generator) -> Curated:
        """Nothing, or a whole batch: first what waited, then this step's groups in order of issue."""
        fresh = self._live(record)
        waiting = len({(row.step, row.rollout.group_id) for row in self._waiting})
        target = self.groups or len({rollout.group_id for rollout in record.rollouts})
        self._round += 1
        if waiting + len(fresh) < target and self._round < self.rounds:
            self._waiting += [
                StoredRow(record.rollouts[place], record.step, float(record.advantages[place]))
                for places in fresh.values()
                for place in places.tolist()
            ]
            self._last = {"dynamic_rounds": float(self._round), "dynamic_surplus": 0.0}
            return Curated(np.zeros(0, dtype=np.int64), np.zeros(0))
        taken: list[int] = []
        used, room = 0, len(record.rollouts) - len(self._waiting)
        for places in fresh.values():
            if waiting + used == target or len(taken) + len(places) > room:
                break
            taken += places.tolist()
            used += 1
        rows = np.sort(np.array(taken, dtype=np.int64))
        stored = tuple(self._waiting)
        self._last = {"dynamic_rounds": float(self._round), "dynamic_surplus": float(len(fresh) - used)}
        self._waiting, self._round = [], 0
        return Curated(rows, np.ones(len(rows)), stored)

    def _live(self, record: StepRecord) -> dict[str, IntArray]:
        groups = live_groups(record)
        if self.live_by == "advantage":
            return groups
        return {key: places for key, places in groups.items() if all(map(len, outcomes_of(record, places)))}

    def metrics(self) -> dict[str, float]:
        """Steps that the update took so far, and live groups dropped as surplus."""
        return dict(self._last)

    def state_dict(self) -> dict[str, Any]:
        return {"waiting": pack_rows(self._waiting), "round": self._round, "last": dict(self._last)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._waiting = unpack_rows(state["waiting"])
        self._round = int(state["round"])
        self._last = {name: float(value) for name, value in state["last"].items()}
