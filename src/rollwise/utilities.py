"""What a step's final counts are worth: one term h(s, f) per prompt, and "sum" or "min" over the prompts.

The six utilities of AdaRoll-GRPO (arXiv 2610.37429) and any a user writes. s counts successes, f failures, n = s + f;
a prompt without rollouts has variance 0, maximum reward 0 and squared advantage 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from rollwise.suggest import nearest
from rollwise.types import FloatArray, IntArray, RollwiseError

Kind = Literal["sum", "min"]
Term = Callable[[IntArray, IntArray], FloatArray]

ADVANTAGE_FORMS = ("raw", "normalised")

_PROBE = 64
"""Counts up to here are compared when a user's function is asked whether it is symmetric."""


def variance(successes: IntArray, failures: IntArray) -> FloatArray:
    """Population variance of 0/1 rewards, s*f/n^2 and 0 at n = 0; shapes follow the inputs."""
    n = np.maximum(successes + failures, 1)
    return np.asarray(successes * failures / (n * n), dtype=np.float64)


def max_reward(successes: IntArray, failures: IntArray) -> FloatArray:
    """1 where at least one rollout succeeded, else 0; shapes follow the inputs."""
    return np.asarray((successes >= 1) & (failures >= 0), dtype=np.float64)


def squared_advantage_raw(successes: IntArray, failures: IntArray) -> FloatArray:
    """Sum over the group of (r - mean)^2 = s*f/n, 0 at n = 0; shapes follow the inputs."""
    return np.asarray(successes * failures / np.maximum(successes + failures, 1), dtype=np.float64)


def squared_advantage_normalised(successes: IntArray, failures: IntArray) -> FloatArray:
    """Sum over the group of ((r - mean)/std)^2 = n in a mixed group, else 0; shapes follow the inputs."""
    return np.where((successes >= 1) & (failures >= 1), successes + failures, 0).astype(np.float64)


@dataclass(frozen=True)
class _Table:
    """A user's table as a term; equality is that of the bytes, so that utilities stay comparable."""

    size: int
    data: bytes = field(repr=False)

    def __call__(self, successes: IntArray, failures: IntArray) -> FloatArray:
        table = np.frombuffer(self.data, dtype=np.float64).reshape(self.size, self.size)
        return table[successes, failures]


@dataclass(frozen=True)
class Utility:
    """U = sum or min over prompts of `term(s, f)`.

    `term` takes two integer arrays of one shape and returns floats of that shape; `n_limit` is the largest n it is
    defined for (None: any). `advantage_form` matters to the squared-advantage utilities only.
    """

    name: str
    kind: Kind
    term: Term
    advantage_form: str = "raw"
    n_limit: int | None = None

    @classmethod
    def from_function(cls, function: Term, kind: Kind, name: str = "user") -> Utility:
        """A utility from a vectorised h(s, f).

        Raises:
            RollwiseError: `kind` is neither "sum" nor "min".
        """
        return cls(name, _check_kind(kind), function)

    @classmethod
    def from_table(cls, table: ArrayLike, kind: Kind, name: str = "user") -> Utility:
        """A utility from a table [n+1, n+1] of h(s, f); entries with s + f > n are never read.

        Raises:
            RollwiseError: the table is not square, an entry with s + f <= n is not finite, or `kind` is unknown.
        """
        values = np.array(table, dtype=np.float64)
        if values.ndim != 2 or values.shape[0] != values.shape[1] or values.shape[0] < 1:
            raise RollwiseError(f"utility table has shape {values.shape}: it must be square, [n+1, n+1] over (s, f)")
        size = values.shape[0]
        values[np.add.outer(np.arange(size), np.arange(size)) >= size] = 0.0
        if not np.isfinite(values).all():
            raise RollwiseError("utility table holds a value that is not finite: every h(s, f) must be a number")
        return cls(name, _check_kind(kind), _Table(size, values.tobytes()), n_limit=size - 1)

    def table(self, n_max: int) -> FloatArray:
        """h as an array [n_max+1, n_max+1] over (s, f), zero where s + f > n_max.

        Raises:
            RollwiseError: h is not defined up to n_max, or not finite, or of the wrong shape.
        """
        if self.n_limit is not None and n_max > self.n_limit:
            raise RollwiseError(
                f"utility {self.name!r} is a table up to n = {self.n_limit}; n = {n_max} was asked for"
            )
        s, f = np.nonzero(np.add.outer(np.arange(n_max + 1), np.arange(n_max + 1)) <= n_max)
        terms = np.asarray(self.term(s, f), dtype=np.float64)
        if terms.shape != s.shape:
            raise RollwiseError(
                f"utility {self.name!r} returned shape {terms.shape} for {s.shape} counts: vectorise it"
            )
        if not np.isfinite(terms).all():
            raise RollwiseError(
                f"utility {self.name!r} returned a value that is not finite; return a number for all n"
            )
        table = np.zeros((n_max + 1, n_max + 1))
        table[s, f] = terms
        return table

    def value(self, successes: ArrayLike, failures: ArrayLike) -> Any:
        """U of final counts [..., B], one value per leading index (a float for a single state)."""
        s, f = np.asarray(successes, dtype=np.int64), np.asarray(failures, dtype=np.int64)
        terms = np.asarray(self.term(s, f), dtype=np.float64)
        total = terms.sum(axis=-1) if self.kind == "sum" else terms.min(axis=-1)
        return float(total) if total.ndim == 0 else total

    @property
    def symmetric(self) -> bool:
        """Whether h(s, f) == h(f, s), for all n of a table and for n up to 64 of a function."""
        table = self.table(_PROBE if self.n_limit is None else self.n_limit)
        return bool(np.array_equal(table, table.T))

    def digest(self, n_max: int) -> str:
        """Hex digest of kind and h up to n_max: utilities with equal digests have equal solutions."""
        state = hashlib.blake2b(self.kind.encode(), digest_size=16)
        state.update(self.table(n_max).tobytes())
        return state.hexdigest()


_FORMS: dict[str, tuple[Kind, Term, Term]] = {
    "min_variance": ("min", variance, variance),
    "min_squared_advantage": ("min", squared_advantage_raw, squared_advantage_normalised),
    "sum_max_reward": ("sum", max_reward, max_reward),
    "min_max_reward": ("min", max_reward, max_reward),
    "sum_variance": ("sum", variance, variance),
    "sum_squared_advantage": ("sum", squared_advantage_raw, squared_advantage_normalised),
}

UTILITIES = tuple(_FORMS)
"""Names of the published utilities, U1 to U6 in order."""


def get_utility(name: str | Utility, advantage_form: str = "raw") -> Utility:
    """The published utility of that name; a `Utility` comes back as it is.

    Args:
        name: one of `UTILITIES`.
        advantage_form: "raw" (A = r - mean) or "normalised" (A = (r - mean)/std), for the squared-advantage utilities.

    Raises:
        RollwiseError: unknown name or form; the message gives the nearest valid one.
    """
    if isinstance(name, Utility):
        return name
    if name not in _FORMS:
        raise RollwiseError(f"utility {name!r} is unknown: {nearest(str(name), UTILITIES)}")
    if advantage_form not in ADVANTAGE_FORMS:
        raise RollwiseError(
            f"advantage_form {advantage_form!r} is unknown: {nearest(advantage_form, ADVANTAGE_FORMS)}"
        )
    kind, raw, normalised = _FORMS[name]
    return Utility(name, kind, raw if advantage_form == "raw" else normalised, advantage_form)


def _check_kind(kind: str) -> Kind:
    if kind not in ("sum", "min"):
        raise RollwiseError(f"utility kind {kind!r} is unknown: {nearest(kind, ('sum', 'min'))}")
    return cast(Kind, kind)
