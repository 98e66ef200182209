"""The index policy at work: one rollout at a time to the prompt with the largest index, from a heap."""

from __future__ import annotations

import heapq

import numpy as np

from rollwise.solver.prices import indices
from rollwise.solver.prompts import PromptStates, Terms
from rollwise.types import RollwiseError

DIGITS = 12
"""Indices are compared to this many digits after the point; closer ones are ties."""


class IndexQueue:
    """Serve the largest index first; ties go to the prompt with fewest rollouts, then the lowest slot.

    `next()` names a slot and counts one rollout as running there; `observe` brings its outcome back, or None where it
    is unknown. A prompt with rollouts running waits until they are back, so at most P rollouts run at once.
    """

    def __init__(self, utility: Terms, prompts: PromptStates) -> None:
        self.utility = utility
        self._prompts = prompts
        self._successes = prompts.successes.copy()
        self._failures = prompts.failures.copy()
        self._room = prompts.room.copy()
        self._paid = prompts.successes + prompts.failures + prompts.pending
        self._running = np.zeros(prompts.size, dtype=bool)
        self._known: dict[tuple[float | int, ...], float] = {}
        worth = indices(utility, prompts)
        self._heap = [(*self._key(slot, worth[slot]), slot) for slot in np.flatnonzero(self._room > 0).tolist()]
        heapq.heapify(self._heap)

    def next(self) -> int | None:
        """Slot that gets the next rollout; None where no prompt has room and nothing running."""
        if not self._heap:
            return None
        slot = heapq.heappop(self._heap)[-1]
        self._room[slot] -= 1
        self._paid[slot] += 1
        self._running[slot] = True
        return slot

    def index(self, slot: int) -> float:
        """The index that prompt has now."""
        p = self._prompts
        a, b, dear, cheap = p.a[slot], p.b[slot], p.cost_success[slot], p.cost_failure[slot]
        s, f, room = self._successes[slot], self._failures[slot], self._room[slot]
        key = (a, b, s, f, room, dear, cheap, p.table[slot])
        if key not in self._known:
            state = PromptStates.of(
                a, b, room, successes=s, failures=f, cost_success=dear, cost_failure=cheap, table=p.table[slot]
            )
            self._known[key] = float(indices(self.utility, state)[0])
        return self._known[key]

    def observe(self, slot: int, success: bool | None) -> None:
        """Take in the outcome of the rollout running at `slot`.

        Raises:
            RollwiseError: none is running there.
        """
        if not self._running[slot]:
            raise RollwiseError(f"observe: no rollout is running at slot {slot}; call next() first")
        self._running[slot] = False
        if success is not None:
            (self._successes if success else self._failures)[slot] += 1
        if self._room[slot] > 0:
            heapq.heappush(self._heap, (*self._key(slot, self.index(slot)), slot))

    def _key(self, slot: int, index: float) -> tuple[float, int]:
        return -round(float(index), DIGITS), int(self._paid[slot])
