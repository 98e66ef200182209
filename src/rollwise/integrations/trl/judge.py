"""What one call of the trainer scored, turned into rewards, outcomes, lengths and end flags over all processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from rollwise.integrations.trl.aggregation import sum_rewards
from rollwise.integrations.trl.outcomes import OutcomeReader
from rollwise.integrations.trl.rewards import checked, finish
from rollwise.integrations.trl.scores import Scores
from rollwise.types import FloatArray, Outcome


class Judge:
    """Reads `Scores` out of a call of the trainer.

    `outcomes` says what counts as success; `weights` (F,) sum the reward columns; `ends` are the tokens that end a
    completion; `accelerator` gathers over processes; `answers` finds what a completion says, where votes are counted.
    """

    def __init__(
        self,
        outcomes: OutcomeReader,
        weights: FloatArray,
        ends: Sequence[int | None],
        accelerator: Accelerator,
        answers: Callable[[Any], str] | None = None,
    ) -> None:
        self.outcomes = outcomes
        self.weights = weights
        self._ends = frozenset(ends)
        self._accelerator = accelerator
        self._answers = answers
        self._function = None if outcomes.function is None else checked(outcomes.function, outcomes.source)

    def score(
        self,
        columns: torch.Tensor,
        rows: Sequence[dict[str, Any]],
        prompts: list[Any],
        completions: list[Any],
        completion_ids: list[Any],
        extras: dict[str, Any],
    ) -> Scores:
        """Scores of the n completions of all processes; a row whose outcome is unknown has no reward in any column.

        Args:
            columns: (n, F) gathered rewards.
            rows, prompts, completions, completion_ids: this process's own, as `_calculate_rewards` got them.
            extras: what else the trainer passes to a reward function.

        Raises:
            RollwiseError: if the outcomes cannot be read.
        """
        # an empty completion has no last token; it was not cut short either
        facts = [[len(tokens), bool(len(tokens)) and int(tokens[-1]) not in self._ends] for tokens in completion_ids]
        lengths, truncated = self._gather(facts, torch.long).T
        own = None
        if self._function is not None:
            names = [name for name in rows[0] if name not in ("prompt", "completion", "completion_ids")]
            arguments = {name: [row[name] for row in rows] for name in names} | extras
            verdicts = finish(
                self._function(prompts=prompts, completions=completions, completion_ids=completion_ids, **arguments)
            )
            own = self._gather([np.nan if verdict is None else verdict for verdict in verdicts], torch.float32)
        values = columns.double().cpu().numpy()
        summed = sum_rewards(values, self.weights)
        outcomes = tuple(self.outcomes.read(values, summed, own))
        if self.outcomes.decides:
            # what was not judged is no failure: the penalty that another function gave it must not train
            unknown = np.array([outcome is Outcome.UNKNOWN for outcome in outcomes], dtype=bool)
            values[unknown], summed[unknown] = np.nan, np.nan
        said: list[str | None] = [None] * len(values)
        if self._answers is not None:
            said = gather_object([self._answers(completion) for completion in completions])
        return Scores(values, summed, outcomes, lengths.astype(np.float64), truncated.astype(bool), tuple(said))

    def _gather(self, values: list[Any], kind: torch.dtype) -> np.ndarray:
        local = torch.tensor(values, dtype=kind, device=self._accelerator.device)
        return self._accelerator.gather(local).cpu().numpy().astype(np.float64 if kind.is_floating_point else np.int64)
