"""The data in shuffled passes: what a plain data loader does, and the stream of candidates that other selectors draw on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rollwise.beliefs import PriorSource
from rollwise.types import IntArray, RollwiseError, StepRecord


class Passes:
    """Every prompt once per pass, each pass in an order of its own; a pass's end fills up from the next one.

    Args:
        seed: of the orders.
    """

    name = "passes"
    needs: frozenset[str] = frozenset()
    copies = False
    done = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.passes, self.taken = 0, 0

    def select(self, pool: Sequence[str], beliefs: PriorSource, n: int, rng: np.random.Generator) -> IntArray:
        """The next `n` places; none twice in one step."""
        check_pool(pool, n)
        return self.draw(len(pool), n)

    def draw(self, size: int, n: int) -> IntArray:
        """The next `n` different places of `size`, of which there are at least `n`."""
        found: list[int] = []
        while len(found) < n:
            if self.taken >= size:
                self.passes, self.taken = self.passes + 1, 0
            order = np.random.default_rng([self.seed, self.passes, 31]).permutation(size)[self.taken :]
            fresh = order[~np.isin(order, found)] if found else order
            rest = n - len(found)
            # what a step holds already is passed over, and counts as served by this pass
            last = np.flatnonzero(order == fresh[rest - 1])[0] + 1 if len(fresh) >= rest else len(order)
            found.extend(fresh[:rest].tolist())
            self.taken += int(last)
        return np.array(found, dtype=np.int64)

    def observe(self, record: StepRecord) -> None:
        """Looks at no outcome."""

    def metrics(self) -> dict[str, float]:
        return {"passes": float(self.passes)}

    def state_dict(self) -> dict[str, Any]:
        return {"passes": self.passes, "taken": self.taken}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.passes, self.taken = int(state["passes"]), int(state["taken"])


def check_pool(pool: Sequence[str], n: int) -> None:
    """Raise `RollwiseError` where a step takes more prompts than there are."""
    if n < 1 or n > len(pool):
        raise RollwiseError(f"prompts: a step takes {n} and the data set has {len(pool)}; take 1 to {len(pool)}")
