"""Rollout-level replay (arXiv 2606.04560): informative rollouts of the last steps train again in the place of dead ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollwise.curators.base import Curated
from rollwise.curators.rows import live_groups, pack_rows, unpack_rows
from rollwise.types import RollwiseError, StepRecord, StoredRow


class Replay:
    """All F fresh rollouts of live groups train, and `min(round(share F), N - F)` stored ones beside them.

    Stored rollouts are drawn without replacement with probability proportional to `(|A| + eps)^power`, A their advantage
    when they were made, which they keep; so do the log-probabilities that ratios are taken to. A draw removes nothing. Rows
    older than `max_age` updates are dropped first, and the oldest where there are more than `capacity`. Nothing is drawn in
    the first `warmup` updates, nor in a step without a live group.

    Args:
        share: r, stored rows per fresh one.
        power, eps: of the priority; power 0 draws evenly.
        max_age: tau, in optimizer updates since the rollout was made.
        warmup: updates before the first draw.
        capacity: most rows kept.
        updates: optimizer updates that a step makes.
    """

    name = "replay"
    needs = frozenset({"payload"})
    weighs_by: frozenset[str] = frozenset()

    def __init__(
        self,
        share: float = 0.5,
        power: float = 0.5,
        eps: float = 1e-6,
        max_age: int = 10,
        warmup: int = 20,
        capacity: int = 30_000,
        updates: int = 1,
    ) -> None:
        for name, value in (("share", share), ("power", power), ("max_age", max_age), ("warmup", warmup)):
            if not 0 <= value < np.inf:
                raise RollwiseError(f"replay {name}: {value}; give 0 or more")
        if capacity < 1 or updates < 1 or not eps > 0:
            raise RollwiseError(f"replay: capacity {capacity}, updates {updates}, eps {eps}; give positive numbers")
        self.share, self.power, self.eps = share, power, eps
        self.max_age, self.warmup, self.capacity, self.updates = max_age, warmup, capacity, updates
        self._rows: list[tuple[int, StoredRow]] = []
        self._made = 0
        self._last = {"replayed_rows": 0.0, "replay_age": 0.0}

    @property
    def held(self) -> frozenset[str]:
        """Ids of the stored rollouts."""
        return frozenset(row.rollout.id for _, row in self._rows)

    def curate(self, record: StepRecord, rng: np.random.Generator) -> Curated:
        """Evict, draw, then store the fresh survivors."""
        groups = live_groups(record)
        fresh = np.sort(np.concatenate(list(groups.values()))) if groups else np.zeros(0, dtype=np.int64)
        self._rows = [(born, row) for born, row in self._rows if self._made - born <= self.max_age]
        room = len(record.rollouts) - len(fresh) - len(record.stored)
        wanted = min(round(self.share * len(fresh)), room, len(self._rows)) if self._made >= self.warmup else 0
        drawn = self._draw(max(0, wanted), rng)
        born = self._made
        if len(fresh) or record.stored:
            self._made += self.updates
        self._rows += [
            (born, StoredRow(record.rollouts[place], record.step, float(record.advantages[place])))
            for place in fresh.tolist()
        ]
        del self._rows[: max(0, len(self._rows) - self.capacity)]
        ages = [born - then for then, _ in drawn]
        self._last = {"replayed_rows": float(len(drawn)), "replay_age": float(np.mean(ages)) if ages else 0.0}
        return Curated(fresh, np.ones(len(fresh)), (*record.stored, *(row for _, row in drawn)))

    def metrics(self) -> dict[str, float]:
        """Rows replayed and their mean age in updates, in the last step; rows stored."""
        return self._last | {"replay_stored": float(len(self._rows))}

    def state_dict(self) -> dict[str, Any]:
        return {
            "made": self._made,
            "born": [born for born, _ in self._rows],
            "rows": pack_rows(row for _, row in self._rows),
            "last": dict(self._last),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._made = int(state["made"])
        self._rows = list(zip(map(int, state["born"]), unpack_rows(state["rows"]), strict=True))
        self._last = {name: float(value) for name, value in state["last"].items()}

    def _draw(self, count: int, rng: np.random.Generator) -> list[tuple[int, StoredRow]]:
        if not count:
            return []
        priority = (np.abs([row.advantage or 0.0 for _, row in self._rows]) + self.eps) ** self.power
        chosen = rng.choice(len(self._rows), size=count, replace=False, p=priority / priority.sum())
        return [self._rows[place] for place in np.sort(chosen)]
