"""Replay a real training log through beliefs: how well does each predict a prompt's next visit?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rollwise.beliefs import FLAT, CarriedPrior, EmpiricalPrior, FixedPrior, PriorSource, log_rising
from rollwise.simulate.recorded import RecordedLog
from rollwise.types import FloatArray, IntArray, RollwiseError

DISCOUNTS = (0.5, 0.7, 0.85, 1.0)


@dataclass(frozen=True)
class Score:
    """How well a belief predicted `visits` visits one step ahead; less is better in all of them.

    `log_loss` is minus the mean log-probability (nats) of a visit's count, beta-binomial; `rollout_log_loss` that of one
    rollout, the visit's rollouts in a row; `squared_error` the mean of (E[p] - s/n)^2; `error` the standard error of
    `log_loss` over prompts.
    """

    name: str
    visits: int
    log_loss: float
    rollout_log_loss: float
    squared_error: float
    error: float


def predictors(discounts: tuple[float, ...] = DISCOUNTS) -> dict[str, PriorSource]:
    """Beta(1,1), each prompt's running mean and last visit, the population's fit, and its fit carried on per prompt."""
    return {
        "flat": FixedPrior(FLAT),
        "last_visit": CarriedPrior(base=FLAT, discount=0.0),
        "running_mean": CarriedPrior(base=FLAT, discount=1.0),
        "empirical": EmpiricalPrior(),
        **{f"carried_{discount:g}": CarriedPrior(discount=discount) for discount in discounts},
    }


def score_log(log: RecordedLog, sources: Mapping[str, PriorSource] | None = None) -> list[Score]:
    """Show every source the log visit by visit, each predicting a visit before it sees it.

    A prompt's first visit is learnt from but not scored, so that all sources are judged where a past exists.

    Raises:
        RollwiseError: no prompt was visited twice.
    """
    return [_score(name, source, log) for name, source in (predictors() if sources is None else sources).items()]


def _score(name: str, source: PriorSource, log: RecordedLog) -> Score:
    met = np.zeros(len(log.ids), dtype=bool)
    losses, prompts, per_rollout, squares, rollouts = [], [], 0.0, 0.0, 0
    for visit in range(log.visits):
        seen = np.flatnonzero(log.trials[:, visit] > 0)
        ids = [log.ids[k] for k in seen]
        s, n = log.successes[seen, visit], log.trials[seen, visit]
        a, b = source.for_step(ids)[met[seen]].T
        won, tried = s[met[seen]], n[met[seen]]
        in_a_row = -_log_sequence(a, b, won, tried)
        losses.append(in_a_row - _log_choices(won, tried))
        prompts.append(seen[met[seen]])
        per_rollout += float(in_a_row.sum())
        squares += float(((a / (a + b) - won / tried) ** 2).sum())
        rollouts += int(tried.sum())
        source.observe(ids, s, n - s)
        met[seen] = True
    loss, prompt = np.concatenate(losses), np.concatenate(prompts)
    if not len(loss):
        raise RollwiseError("log: no prompt was visited twice; give a training log such as rlvr")
    mean = float(loss.mean())
    by_prompt = np.bincount(prompt, weights=loss - mean, minlength=len(log.ids))
    error = float(np.sqrt((by_prompt**2).sum())) / len(loss)
    return Score(name, len(loss), mean, per_rollout / rollouts, squares / len(loss), error)


def _log_sequence(a: FloatArray, b: FloatArray, s: IntArray, n: IntArray) -> FloatArray:
    """ln (a)_s (b)_f / (a+b)_n: s successes and n - s failures in one given order."""
    return log_rising(a, s) + log_rising(b, n - s) - log_rising(a + b, n)


def _log_choices(s: IntArray, n: IntArray) -> FloatArray:
    """ln of the number of orders, n! / (s! f!)."""
    return log_rising(1.0, n) - log_rising(1.0, s) - log_rising(1.0, n - s)
