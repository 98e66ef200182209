"""What one call of the trainer scored, over all processes, in the order the rollouts were issued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rollwise.step import Step, Wave
from rollwise.types import FloatArray, Outcome


@dataclass(frozen=True)
class Scores:
    """Scores of n rollouts.

    `columns` (n, F) holds each reward function's value, NaN where it abstained; `summed` (n,) their weighted sum;
    `outcomes` n verdicts; `lengths` (n,) tokens; `truncated` (n,) whether the end token is missing; `answers` what each
    said, "" for nothing, None where nobody looked.
    """

    columns: FloatArray
    summed: FloatArray
    outcomes: tuple[Outcome, ...]
    lengths: FloatArray
    truncated: np.ndarray
    answers: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.summed)

    @classmethod
    def join(cls, parts: Sequence[Scores]) -> Scores:
        """The scores of several waves, one after the other."""
        return cls(
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.summed for part in parts]),
            tuple(outcome for part in parts for outcome in part.outcomes),
            np.concatenate([part.lengths for part in parts]),
            np.concatenate([part.truncated for part in parts]),
            tuple(answer for part in parts for answer in part.answers),
        )

    def voted(self, rewards: FloatArray, own: bool) -> Scores:
        """The same with what a vote made of the rewards (n,); `own` says that no other reward column is there."""
        return replace(self, summed=rewards, columns=rewards[:, None] if own else self.columns)


def report(
    step: Step, wave: Wave, scores: Scores, logprobs: FloatArray | None = None, norms: FloatArray | None = None
) -> None:
    """Tell the step what came back for each of the wave's rollouts.

    A rollout that no reward function scored has no reward, whatever its outcome. `logprobs` (n,) is their summed
    log-probability, `norms` (n,) the norm of its gradient.
    """
    step.observe(
        *(
            replace(
                rollout.result(
                    scores.outcomes[k],
                    answer=scores.answers[k],
                    tokens=int(scores.lengths[k]),
                    logprob=None if logprobs is None else float(logprobs[k]),
                    gradient_norm=None if norms is None else float(norms[k]),
                ),
                reward=None if np.isnan(scores.summed[k]) else float(scores.summed[k]),
            )
            for k, rollout in enumerate(wave.rollouts)
        )
    )
