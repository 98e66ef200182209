"""The nouns every part of rollwise shares: outcomes, rollouts, the view an allocator decides on, the record of a step.

Nothing here computes; arrays are numpy, B is the number of prompt slots of a step and n the number of rollouts.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

UNLIMITED = int(np.iinfo(np.int64).max // 4)
"""Stands for "no cap" in `StepView.n_max`; large, yet safe to add to."""


class RollwiseError(ValueError):
    """A setting, file or input the user can mend; the message is one line that names it and a valid value."""


class Outcome(Enum):
    """What a verifier said of one rollout. Never the shaped reward, and unknown is not failure."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, value: Any, *, source: str = "outcome") -> Outcome:
        """Read 1/True as success, 0/False as failure, None and NaN as unknown.

        Raises:
            RollwiseError: anything else (infinities, strings, other numbers); the message names `source`.
        """
        if isinstance(value, Outcome):
            return value
        if value is None:
            return cls.UNKNOWN
        if isinstance(value, (bool, np.bool_)):
            return cls.SUCCESS if value else cls.FAILURE
        if isinstance(value, (int, float, np.integer, np.floating)):
            number = float(value)
            if math.isnan(number):
                return cls.UNKNOWN
            if number in (0.0, 1.0):
                return cls.SUCCESS if number else cls.FAILURE
        raise RollwiseError(f"{source} returned {value!r}: an outcome is 0, 1, or None for unknown")


@dataclass(frozen=True, slots=True)
class Rollout:
    """One completion with its outcome, as reported back to a step.

    `reward` is what trains (any finite number, or None where unknown); `outcome` is what beliefs learn from.
    `answer` is its answer in canonical form ("" for none given, None where nobody looked), `belief` the Beta (a, b) it was
    issued under, `logprob` the summed behaviour log-probability, `gradient_norm` that of its own log-probability.
    """

    id: str
    prompt_id: str
    group_id: str
    wave: int
    outcome: Outcome = Outcome.UNKNOWN
    reward: float | None = None
    answer: str | None = None
    tokens: int = 0
    logprob: float | None = None
    belief: tuple[float, float] = (1.0, 1.0)
    gradient_norm: float | None = None

    def result(
        self,
        outcome: Any,
        *,
        reward: float | None = None,
        answer: str | None = None,
        tokens: int = 0,
        logprob: float | None = None,
        gradient_norm: float | None = None,
    ) -> Rollout:
        """The same rollout with what came back; `reward` defaults to 1.0 / 0.0 / None by outcome."""
        seen = Outcome.of(outcome)
        if reward is None and seen is not Outcome.UNKNOWN:
            reward = 1.0 if seen is Outcome.SUCCESS else 0.0
        found = {"answer": answer, "tokens": tokens, "logprob": logprob, "gradient_norm": gradient_norm}
        return replace(self, outcome=seen, reward=reward, **found)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A rollout of an earlier step that trains again.

    `advantage` is frozen as it was when the rollout was made, weights included; None where it is to be computed in the
    group that `rollout.group_id` names. `step` is the step it was made in.
    """

    rollout: Rollout
    step: int
    advantage: float | None = None


@dataclass(frozen=True)
class StepView:
    """All an allocator may look at. Every array has shape (B,), one entry per prompt slot of the step.

    `successes + failures + unknown` rollouts have come back, `pending` are still running; all are paid for.
    Decisions are multiples of `quantum` in sum (the number of processes), and sum to at most `budget_left`.
    """

    prompt_ids: tuple[str, ...]
    prior_a: FloatArray
    prior_b: FloatArray
    successes: IntArray
    failures: IntArray
    unknown: IntArray
    pending: IntArray
    tokens_spent: IntArray
    expected_cost: FloatArray
    n_min: IntArray
    n_max: IntArray
    budget_left: int
    waves_left: int
    quantum: int = 1
    objective_weights: FloatArray | None = None
    """Weight of each prompt's gradient under the step's objective, frozen at its opening; None where all weigh 1."""
    outcome_cost: FloatArray | None = None
    """(B, 2) tokens a success and a failure are expected to take, which `expected_cost` weighs; None where not known."""
    votes: IntArray | None = None
    """(B, 2) rollouts that gave the leading and the second answer; None where no answer has come back."""
    gradient_norms: FloatArray | None = None
    """(B,) mean gradient norm of the rollouts that report one, 0 for a prompt without; None where none does."""

    @property
    def size(self) -> int:
        """B, the number of prompt slots."""
        return len(self.prompt_ids)

    @property
    def paid(self) -> IntArray:
        """(B,) rollouts paid for so far, running ones included."""
        return self.successes + self.failures + self.unknown + self.pending

    @property
    def budget(self) -> int:
        """N, what the step may spend in all."""
        return int(self.paid.sum()) + self.budget_left

    def digest(self) -> str:
        """Hex digest of every number in the view; equal on every rank or the ranks would decide differently."""
        state = hashlib.blake2b(digest_size=16)
        state.update("\x1f".join(self.prompt_ids).encode())
        for name in ("prior_a", "prior_b", "expected_cost"):
            state.update(np.ascontiguousarray(getattr(self, name), dtype=np.float64).tobytes())
        for name in ("successes", "failures", "unknown", "pending", "tokens_spent", "n_min", "n_max"):
            state.update(np.ascontiguousarray(getattr(self, name), dtype=np.int64).tobytes())
        for values in (self.objective_weights, self.outcome_cost, self.votes, self.gradient_norms):
            if values is not None:
                state.update(np.ascontiguousarray(values, dtype=np.float64).tobytes())
        state.update(np.array([self.budget_left, self.waves_left, self.quantum], dtype=np.int64).tobytes())
        return state.hexdigest()


@dataclass(frozen=True)
class Wave:
    """Rollouts to generate together: `counts` (B,) per prompt slot, and one entry per rollout still to be made.

    `rollouts` lacks those a ledger already holds, so it may be shorter than `counts.sum()`, even empty.
    """

    index: int
    counts: IntArray
    rollouts: tuple[Rollout, ...]


@dataclass(frozen=True)
class StepRecord:
    """What a closed step was: one entry per rollout paid for (n of them), and per prompt slot (B of them).

    `advantages` already carry the row weight; `weights` is that factor, so `advantages / weights` is the plain one, and
    it is the product of `factors`: `objective` (frozen at the opening), `curator` (0 for a row that does not train) and
    `weighting` (rows against prompts). A prompt that was selected several times has one slot, or one per copy.
    """

    step: int
    prompt_ids: tuple[str, ...]
    counts: IntArray
    successes: IntArray
    failures: IntArray
    unknown: IntArray
    rollouts: tuple[Rollout, ...]
    slots: IntArray
    advantages: FloatArray
    weights: FloatArray
    factors: dict[str, FloatArray]
    waves: int
    budget: int
    metrics: dict[str, float] = field(default_factory=dict)
    kept: IntArray | None = None
    """Places of the rollouts that train, ascending; None for all. The others have advantage 0."""
    stored: tuple[StoredRow, ...] = ()
    """Rollouts of earlier steps that train beside them, with their advantages."""

    @property
    def trained(self) -> IntArray:
        """(m,) places of the step's own rollouts that train."""
        return np.arange(len(self.rollouts)) if self.kept is None else self.kept

    @property
    def idle(self) -> bool:
        """Whether nothing trains, so that the step makes no update."""
        return not len(self.trained) and not self.stored
