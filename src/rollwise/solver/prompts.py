"""Where every prompt of a step stands, as arrays: what the price and wave solvers work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.solver.jit import compile_kernel
from rollwise.types import FloatArray, IntArray, RollwiseError
from rollwise.utilities import Kind, Utility


@dataclass(frozen=True)
class PromptStates:
    """P prompts: their Beta prior, their counts, and what they may still get. All arrays are (P,).

    A rollout costs `cost_success` or `cost_failure` by its outcome, in the unit of the budget: 1 where that counts
    rollouts, a mean length where it counts tokens. Its expected cost is mu * cost_success + (1 - mu) * cost_failure.
    """

    a: FloatArray
    b: FloatArray
    successes: IntArray
    failures: IntArray
    pending: IntArray
    """Rollouts paid for whose outcome is not in yet."""
    room: IntArray
    """Rollouts the prompt may get from now on."""
    cost_success: FloatArray
    cost_failure: FloatArray
    table: IntArray
    """Which table of h is the prompt's, where they differ (`PromptTables`); 0 everywhere else."""

    @classmethod
    def of(
        cls,
        a: ArrayLike,
        b: ArrayLike,
        room: ArrayLike,
        *,
        successes: ArrayLike = 0,
        failures: ArrayLike = 0,
        pending: ArrayLike = 0,
        cost_success: ArrayLike = 1.0,
        cost_failure: ArrayLike = 1.0,
        table: ArrayLike = 0,
    ) -> PromptStates:
        """Broadcast and check; single numbers stand for all prompts.

        Raises:
            RollwiseError: a prior or cost that is not positive, a negative count, or shapes that do not fit.
        """
        given = (a, b, successes, failures, pending, room, cost_success, cost_failure, table)
        try:
            columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(column)) for column in given))
        except ValueError:
            raise RollwiseError("prompt states have arrays of different lengths: give one entry per prompt") from None
        floats = [np.ascontiguousarray(columns[place], dtype=np.float64) for place in (0, 1, 6, 7)]
        ints = [np.ascontiguousarray(columns[place], dtype=np.int64) for place in (2, 3, 4, 5, 8)]
        if not all((np.isfinite(x) & (x > 0)).all() for x in floats):
            raise RollwiseError("prior and cost of a prompt must be positive numbers, such as a=1.0, b=1.0, cost 1.0")
        if any((x < 0).any() for x in ints):
            raise RollwiseError("counts, pending, room and table of a prompt must be 0 or more")
        return cls(floats[0], floats[1], ints[0], ints[1], ints[2], ints[3], floats[2], floats[3], ints[4])

    @property
    def size(self) -> int:
        """P."""
        return self.a.size

    @property
    def top(self) -> int:
        """Largest number of outcomes any prompt can end with."""
        return int((self.successes + self.failures + self.pending + self.room).max(initial=0))

    @property
    def expected_cost(self) -> FloatArray:
        """(P,) mu * cost_success + (1 - mu) * cost_failure of the next rollout."""
        mean = (self.a + self.successes) / (self.a + self.b + self.successes + self.failures)
        return self.cost_failure + mean * (self.cost_success - self.cost_failure)

    def at_cost(self, cost: float) -> PromptStates:
        """The same prompts where every rollout costs this much."""
        flat = np.full(self.size, cost)
        return replace(self, cost_success=flat, cost_failure=flat)

    def take(self, places: NDArray | slice) -> PromptStates:
        """The prompts at these places."""
        return PromptStates(*(getattr(self, field.name)[places] for field in fields(self)))

    def grouped(self) -> tuple[IntArray, IntArray, IntArray]:
        """Prompts in equal situations: (U,) first member of each group, (P,) group of each, (U,) group sizes."""
        rows = np.stack([getattr(self, field.name).view(np.uint64) for field in fields(self)], axis=1)
        keys = _mix(rows, _MULTIPLIERS)
        ordered = np.sort(keys)
        if (ordered[1:] != ordered[:-1]).all():
            alone = np.arange(self.size)
            return alone, alone, np.ones_like(alone)
        _, first, group, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        if not _are_alike(rows, first, group):  # two different rows met under one key
            _, first, group, counts = np.unique(
                rows, axis=0, return_index=True, return_inverse=True, return_counts=True
            )
        return first, group.reshape(-1), counts


_MULTIPLIERS = np.random.Generator(np.random.PCG64(2610)).integers(1 << 62, 1 << 63, 9, dtype=np.uint64) | np.uint64(1)


@compile_kernel
def _mix(rows, multipliers):  # type: ignore[no-untyped-def]
    keys = np.zeros(rows.shape[0], dtype=np.uint64)
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            mixed = (rows[i, j] ^ (rows[i, j] >> np.uint64(29))) * multipliers[j]
            keys[i] += mixed ^ (mixed >> np.uint64(32))
    return keys


@compile_kernel
def _are_alike(rows, first, group):  # type: ignore[no-untyped-def]
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if rows[i, j] != rows[first[group[i]], j]:
                return False
    return True


@dataclass(frozen=True, eq=False)
class PromptTables:
    """A sum whose term differs between prompts, such as one that depends on their beliefs or weights.

    `make(n, kinds)` gives [T, n+1, n+1] h over (s, f) for T of the `count` kinds of prompt there are;
    `PromptStates.table` says whose is which. Only what is in use is made, a part of a large step at a time.
    """

    name: str
    make: Callable[[int, IntArray], FloatArray]
    count: int
    kind: Kind = "sum"


MOST_CELLS = 4_000_000
"""Numbers in the tables made at a time, where prompts have tables of their own; making them takes six times as much."""

_KEPT = 160
"""Largest n of tables kept, 200 kB each: steps ask for the same few again and again."""

Terms = Utility | PromptTables
"""What prompts are worth: one h(s, f) for all, or tables of their own."""


def terms_by_total(utility: Terms, top: int) -> FloatArray:
    """[T, top+1, top+1] h over (n, s), so that the outcomes of one n lie side by side; T = 1 for one h(s, f).

    Raises:
        RollwiseError: h is not defined up to `top`, or not finite.
    """
    if isinstance(utility, Utility):
        return _shared_terms(utility, top) if top <= _KEPT else _arrange(utility.name, utility.table(top)[None])
    return _arrange(utility.name, utility.make(top, np.arange(utility.count)))


def own_terms(utility: Terms, prompts: PromptStates, top: int) -> tuple[PromptStates, FloatArray]:
    """The prompts, and `terms_by_total` of the tables they use alone, `PromptStates.table` numbered to fit."""
    if isinstance(utility, Utility):
        return prompts, terms_by_total(utility, top)
    kinds, table = np.unique(prompts.table, return_inverse=True)
    return replace(prompts, table=table.reshape(-1)), _arrange(utility.name, utility.make(top, kinds))


def parts(utility: Terms, prompts: PromptStates, top: int) -> list[slice]:
    """Prompts that are worked on together: all, or where tables differ as many as `MOST_CELLS` holds tables of."""
    step = prompts.size if isinstance(utility, Utility) else max(1, MOST_CELLS // (top + 1) ** 2)
    return [slice(low, low + step) for low in range(0, prompts.size, step)]


@lru_cache(maxsize=64)
def _shared_terms(utility: Utility, top: int) -> FloatArray:
    terms = _arrange(utility.name, utility.table(top)[None])
    terms.flags.writeable = False
    return terms


def _arrange(name: str, tables: FloatArray) -> FloatArray:
    top = tables.shape[1] - 1
    n, s = np.tril_indices(top + 1)
    arranged = np.zeros((tables.shape[0], top + 1, top + 1))
    arranged[:, n, s] = tables[:, s, n - s]
    if not np.isfinite(arranged).all():
        raise RollwiseError(f"utility {name!r} gave a value that is not finite; return a number for all n")
    return arranged


@compile_kernel
def settled(terms):  # type: ignore[no-untyped-def]
    """([T] successes from which on h stays at its largest whatever follows, [T] that h); (top+1, 0) where never.

    `terms` is [T, top+1, top+1] over (n, s). At no price would such a prompt be rolled again.
    """
    size = terms.shape[1]
    since, largest = np.full(terms.shape[0], size), np.zeros(terms.shape[0])
    for t in range(terms.shape[0]):
        end, last, highest = terms[t, -1, -1], -1, True
        for n in range(size):
            for s in range(n + 1):
                if terms[t, n, s] > end:
                    highest = False
                elif terms[t, n, s] < end:
                    last = max(last, s)
        if highest:
            since[t], largest[t] = last + 1, end
    return since, largest
