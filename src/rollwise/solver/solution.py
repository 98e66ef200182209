"""A solved table: its value, its policy, and what a wave should be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.solver.fill import fill_waves
from rollwise.solver.jit import compile_kernel
from rollwise.solver.states import StateSpace, TypeArray, rank_state, sort_falling
from rollwise.types import FloatArray, IntArray, RollwiseError
from rollwise.utilities import Utility


@dataclass(frozen=True, eq=False)
class Solution:
    """Value and policy of one (utility, B, N, prior, n_max); arrays are flat over canonical states, layer by layer.

    `uniform_value` is what the same budget is worth spread evenly under the same prior; `seconds` is solving time.
    """

    utility: Utility
    prompts: int
    budget: int
    prior: tuple[float, float]
    n_max: int | None
    space: StateSpace
    choices: NDArray[np.unsignedinteger]
    """[states below layer N] bit q set: serving the q-th type in falling order is optimal."""
    values: FloatArray
    """[states] V, empty where values were not kept."""
    value: float
    uniform_value: float
    seconds: float

    @property
    def states(self) -> int:
        """Canonical states, all layers."""
        return self.space.size

    def action(self, successes: ArrayLike, failures: ArrayLike) -> int:
        """Slot that gets the next rollout, for counts [B] with budget left; ties: fewest rollouts, then lowest slot.

        Raises:
            RollwiseError: counts that are no state of this table, or that leave no budget.
        """
        return int(self.actions(np.asarray(successes)[None], np.asarray(failures)[None])[0])

    def actions(self, successes: ArrayLike, failures: ArrayLike) -> IntArray:
        """(K,) slots for K states, counts [K, B] each; as `action`."""
        s, f = np.asarray(successes, dtype=np.int64), np.asarray(failures, dtype=np.int64)
        space = self.space
        if s.ndim == 2 and s.shape == f.shape and s.shape[1] == self.prompts:
            found, fits = _look_up(
                space.counts, space.type_n, space.type_of, space.offsets, self.choices, space.cap, self.budget, s, f
            )
            if fits:
                return found
        raise self._misfit(s, f, spare=1)

    def value_at(self, successes: ArrayLike, failures: ArrayLike) -> float:
        """V of counts [B] with the rest of the budget still to spend."""
        return float(self.state_values(np.asarray(successes)[None], np.asarray(failures)[None])[0])

    def state_values(self, successes: ArrayLike, failures: ArrayLike) -> FloatArray:
        """(K,) V for K states, counts [K, B] each.

        Raises:
            RollwiseError: counts that are no state of this table, or the table was solved without values.
        """
        self._need_values()
        s, f = self._check(successes, failures)
        return _evaluate(*self._arrays(), self.space.offsets, self.values, s, f)

    def fill(
        self,
        successes: ArrayLike,
        failures: ArrayLike,
        pending: ArrayLike,
        share: ArrayLike,
        *,
        room: ArrayLike | None = None,
        paid: ArrayLike | None = None,
    ) -> IntArray:
        """[K, B] rollouts to start now, where V expected once all running ones are back is largest (`solver.fill`).

        Args:
            successes, failures, pending: [K, B] counts that came back, and rollouts still running.
            share: [K] rollouts to hand out.
            room: [K, B] most each prompt may get; the table's n_max bounds it too.
            paid: [K, B] rollouts paid for, for ties (default: those counted here).

        Raises:
            RollwiseError: counts that are no state of this table, or no room for the share.
        """
        self._need_values()
        k = np.asarray(pending, dtype=np.int64)
        s, f = self._check(successes, failures)
        self._check(s + k, f)
        taken = s + f + k
        free = self.space.cap - taken
        free = free if room is None else np.minimum(free, np.asarray(room, dtype=np.int64))
        give = np.asarray(share, dtype=np.int64)
        if (taken.sum(axis=1) + give > self.budget).any() or (np.maximum(free, 0).sum(axis=1) < give).any():
            raise RollwiseError(f"share {give.max()} does not fit: budget {self.budget}, n_max {self.n_max}")
        counted = taken if paid is None else np.asarray(paid, dtype=np.int64)
        return fill_waves(self.space, self.values, self.prior, s, f, k, free, counted, give)

    def _arrays(self) -> tuple[IntArray, TypeArray, TypeArray]:
        return self.space.counts, self.space.type_n, self.space.type_of

    def _need_values(self) -> None:
        if not self.values.size:
            raise RollwiseError("keep_values was False when this table was solved; solve with keep_values=True")

    def _check(self, successes: ArrayLike, failures: ArrayLike, spare: int = 0) -> tuple[IntArray, IntArray]:
        s, f = np.asarray(successes, dtype=np.int64), np.asarray(failures, dtype=np.int64)
        if s.ndim != 2 or s.shape != f.shape or s.shape[1] != self.prompts:
            raise self._misfit(s, f, spare)
        n = s + f
        if s.size and (min(s.min(), f.min()) < 0 or n.max() > self.space.cap or n.sum(1).max() + spare > self.budget):
            raise self._misfit(s, f, spare)
        return np.ascontiguousarray(s), np.ascontiguousarray(f)

    def _misfit(self, s: IntArray, f: IntArray, spare: int) -> RollwiseError:
        if s.ndim != 2 or s.shape != f.shape or s.shape[1] != self.prompts:
            return RollwiseError(f"counts have shapes {s.shape}, {f.shape}: this table is for {self.prompts} prompts")
        return RollwiseError(
            f"counts are no state to decide in: at least 0 each, at most {self.space.cap} rollouts per prompt "
            f"and {self.budget - spare} in all"
        )


@compile_kernel
def _evaluate(counts, type_n, type_of, offsets, values, s, f):  # type: ignore[no-untyped-def]
    found = np.empty(s.shape[0])
    types = np.empty(s.shape[1], dtype=np.int32)
    for row in range(s.shape[0]):
        total = 0
        for i in range(s.shape[1]):
            types[i] = type_of[s[row, i], f[row, i]]
            total += s[row, i] + f[row, i]
        sort_falling(types)
        found[row] = values[offsets[total] + rank_state(counts, type_n, types, total)]
    return found


@compile_kernel
def _look_up(counts, type_n, type_of, offsets, choices, cap, budget, s, f):  # type: ignore[no-untyped-def]
    # states are checked here: the same checks in numpy cost many times the look-up of one state
    prompts = s.shape[1]
    found = np.full(s.shape[0], -1, dtype=np.int64)
    types = np.empty(prompts, dtype=np.int32)
    for row in range(s.shape[0]):
        total = 0
        for i in range(prompts):
            if s[row, i] < 0 or f[row, i] < 0 or s[row, i] > cap or f[row, i] > cap - s[row, i]:
                return found, False
            types[i] = type_of[s[row, i], f[row, i]]
            total += s[row, i] + f[row, i]
        if total >= budget:
            return found, False
        sort_falling(types)
        bits = np.uint64(choices[offsets[total] + rank_state(counts, type_n, types, total)])
        for i in range(prompts):
            kind = type_of[s[row, i], f[row, i]]
            for q in range(prompts):
                if types[q] == kind and (bits >> np.uint64(q)) & np.uint64(1) and found[row] < 0:
                    found[row] = i
    return found, True
