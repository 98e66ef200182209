"""What a rollout costs in tokens, by prompt and outcome, carried from step to step like the beliefs.

cost_io = (WEIGHT pool_o + tokens_io) / (WEIGHT + n_io),     o = success, failure
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rollwise.beliefs.source import DISCOUNT
from rollwise.types import FloatArray, Outcome, Rollout, RollwiseError, StepRecord

WEIGHT = 2.0
"""Rollouts that the pool's mean counts for."""


class TokenCosts:
    """Running means of the tokens a success and a failure take, for `Step(expected_cost=...)`.

    A prompt's own tokens and counts fade by `discount` at each of its visits, the pool's at each step. A prompt never seen
    costs what the pool does; an outcome the pool has not seen, what a rollout of any outcome does. Rollouts without tokens
    or known outcome teach nothing. Prompts are kept for good: 32 bytes each and their ids.

    Args:
        start: tokens of a rollout before any was seen.
        discount: of what was seen before.
        by_prompt: False for the pool's means alone.

    Raises:
        RollwiseError: a start that is not positive, a discount outside [0, 1].
    """

    def __init__(self, start: float, discount: float = DISCOUNT, by_prompt: bool = True) -> None:
        if not 0 < start < float("inf"):
            raise RollwiseError(f"start: {start} tokens; give what a rollout takes before any was seen, such as 200")
        if not 0 <= discount <= 1:
            raise RollwiseError(f"discount: {discount} is out of range; give a number from 0 to 1, such as {DISCOUNT}")
        self.start, self.discount, self.by_prompt = float(start), float(discount), by_prompt
        self._pool = np.zeros((2, 2))
        self._own: dict[str, FloatArray] = {}

    def for_step(self, prompt_ids: Sequence[str]) -> FloatArray:
        """(B, 2) tokens that a success and a failure of each prompt are expected to take; changes nothing."""
        tokens, counts = self._pool
        any_outcome = tokens.sum() / counts.sum() if counts.sum() else self.start
        pool = np.where(counts > 0, tokens / np.maximum(counts, 1e-300), any_outcome)
        none = np.zeros((2, 2))
        own = np.array([self._own.get(str(key), none) for key in prompt_ids]).reshape(-1, 2, 2)
        return (WEIGHT * pool + own[:, 0]) / (WEIGHT + own[:, 1])

    def observe(self, record: StepRecord) -> None:
        """Take in the rollouts of a closed step, by the ids of `record.prompt_ids`."""
        outcomes = np.array([_column(row) for row in record.rollouts], dtype=np.int64)
        known = outcomes >= 0
        if not known.any():
            return
        spent = np.zeros((len(record.prompt_ids), 2, 2))
        tokens = np.array([row.tokens for row in record.rollouts], dtype=np.float64)
        np.add.at(spent[:, 0], (record.slots[known], outcomes[known]), tokens[known])
        np.add.at(spent[:, 1], (record.slots[known], outcomes[known]), 1.0)
        self._pool = self.discount * self._pool + spent.sum(axis=0)
        if not self.by_prompt:
            return
        fresh: dict[str, FloatArray] = {}
        for key, seen in zip(record.prompt_ids, spent, strict=True):
            if seen[1].any():
                fresh[key] = fresh[key] + seen if key in fresh else seen
        for key, seen in fresh.items():
            self._own[key] = self.discount * self._own[key] + seen if key in self._own else seen

    def state_dict(self) -> dict[str, Any]:
        """Sums of tokens and counts, as arrays."""
        own = np.array(list(self._own.values()), dtype=np.float64).reshape(-1, 2, 2)
        return {"pool": self._pool.copy(), "prompt_ids": list(self._own), "own": own}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; arrays may have become lists (JSON)."""
        self._pool = np.asarray(state["pool"], dtype=np.float64).reshape(2, 2)
        own = np.asarray(state["own"], dtype=np.float64).reshape(-1, 2, 2)
        self._own = dict(zip(state["prompt_ids"], own.copy(), strict=True))


def _column(row: Rollout) -> int:
    """0 for a success and 1 for a failure, -1 where nothing is learnt."""
    if row.tokens <= 0 or row.outcome is Outcome.UNKNOWN:
        return -1
    return int(row.outcome is Outcome.FAILURE)
