"""How success rates move while a model learns: by the gradient a prompt received, or as a recorded run's did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rollwise.beliefs import fit_prior
from rollwise.simulate.recorded import RecordedLog
from rollwise.types import FloatArray, IntArray, Outcome, RollwiseError, StepRecord


class Drift(Protocol):
    """Moves the rates of a population."""

    def start(self, rates: FloatArray) -> FloatArray:
        """(P,) rates at the first step."""
        ...

    def move(
        self, rates: FloatArray, chosen: IntArray, record: StepRecord, success: np.ndarray, epoch: float
    ) -> FloatArray:
        """(P,) rates after a step.

        Args:
            rates: (P,) before it.
            chosen: (B,) places of the step's prompts.
            record: the closed step, n rollouts.
            success: (n,) whether each rollout truly succeeded, whatever the verifier said.
            epoch: passes over the population made so far.
        """
        ...


@dataclass(frozen=True)
class GradientDrift:
    """Every prompt is a policy with one logit, ascended by the step's own advantages.

        logit p_i += rate * B/N * sum over its rows of A (r - p_i),     r - p = d log-likelihood / d logit

    with r the true success and A from the verdict, so a dead group moves nothing and a wrong verdict teaches what is
    wrong. Every prompt of the population also moves by `transfer` times the mean step of the B prompts: what is learnt on
    some helps on others. Rates of exactly 0 or 1 stay.
    """

    rate: float
    transfer: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rate", "transfer"):
            if not 0 <= getattr(self, name) < np.inf:
                raise RollwiseError(f"drift {name}: {getattr(self, name)}; give 0 or more, such as 0.3")

    def start(self, rates: FloatArray) -> FloatArray:
        """The pool's own rates."""
        return rates

    def move(
        self, rates: FloatArray, chosen: IntArray, record: StepRecord, success: np.ndarray, epoch: float
    ) -> FloatArray:
        """(P,) rates after the step; see the class."""
        score = success - rates[chosen][record.slots]
        pull = np.bincount(record.slots, weights=record.advantages * score, minlength=len(chosen))
        steps = self.rate * pull * len(chosen) / max(1, int(record.counts.sum()))
        shift = np.full(len(rates), self.transfer * steps.mean())
        np.add.at(shift, chosen, steps)
        for row in record.stored:
            # an earlier rollout pulls where it was made, at the rate its prompt has now
            place, won = int(row.rollout.prompt_id), float(row.rollout.outcome is Outcome.SUCCESS)
            pull_again = (row.advantage or 0.0) * (won - rates[place])
            shift[place] += self.rate * pull_again * len(chosen) / max(1, int(record.counts.sum()))
        odds = np.exp(shift)
        return rates * odds / (1 - rates + rates * odds)


class RecordedDrift:
    """The population is a training log's prompts, and its rates are what that run's were at the same epoch.

    Rates are smoothed: evidence from the visits around, fading by `discount` a visit, under a prior fitted to the first
    visits. What a method does has no influence on them.
    """

    def __init__(self, log: RecordedLog, discount: float = 0.85) -> None:
        """Raises RollwiseError for a discount outside [0, 1] or a log of one visit."""
        if not 0 <= discount <= 1:
            raise RollwiseError(f"discount: {discount} is out of range; give a number from 0 to 1, such as 0.85")
        if log.visits < 2:
            raise RollwiseError("drift log: the record has one visit; give a training log such as rlvr")
        a, b = fit_prior(log.successes[:, 0], log.trials[:, 0])
        won, lost = smooth(log.successes, discount), smooth(log.trials - log.successes, discount)
        self.rates = (a + won) / (a + b + won + lost)

    def start(self, rates: FloatArray) -> FloatArray:
        """(P,) rates at the first visit."""
        return self.rates[:, 0]

    def move(
        self, rates: FloatArray, chosen: IntArray, record: StepRecord, success: np.ndarray, epoch: float
    ) -> FloatArray:
        """(P,) rates of the log at that epoch; the last ones once the log ends."""
        return self.rates[:, min(int(epoch), self.rates.shape[1] - 1)]


def smooth(counts: IntArray, discount: float) -> FloatArray:
    """(P, T) sum over visits u of discount^|t-u| counts[:, u]."""
    t = np.arange(counts.shape[1])
    return counts @ discount ** np.abs(t[:, None] - t[None, :]).astype(np.float64)
