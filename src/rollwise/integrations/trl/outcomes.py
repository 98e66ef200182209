"""Success, failure or unknown, read from rewards or from a function of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rollwise.imports import load_function
from rollwise.suggest import nearest
from rollwise.types import FloatArray, Outcome, RollwiseError

PENALTIES = ("soft_overlong_punishment_reward", "repetition_penalty_reward")
"""TRL's reward functions that lower the reward of a success and are no verdict of their own."""


class OutcomeReader:
    """Turns rewards into outcomes: success, failure or unknown.

    `outcome` is the name of a reward function, `module:function`, a callable with a reward function's signature, or None.
    With None the weighted sum of rewards is read, as long as it only ever takes two values of which exactly one is
    positive (0 and 1, or -1 and 1): anything richer stops the run and asks for `outcome`.
    """

    decides = True
    """Whether a row without outcome has no reward either; not where a vote gives both."""

    def __init__(
        self,
        outcome: str | Callable[..., Any] | None,
        threshold: float | None,
        names: Sequence[str],
    ) -> None:
        """`names` are the reward functions' names, in column order.

        Raises:
            RollwiseError: if `outcome` names nothing known, or is needed: a penalty would make successes failures.
        """
        self.threshold = threshold
        self.function: Callable[..., Any] | None = None
        self.column: int | None = None
        self.seen: set[float] = set()
        if callable(outcome):
            self.function, self.source = outcome, getattr(outcome, "__name__", type(outcome).__name__)
        elif outcome is None:
            penalty = next((name for name in names if name in PENALTIES), None)
            if penalty is not None:
                others = [name for name in names if name not in PENALTIES]
                raise RollwiseError(
                    f"outcome: {penalty} lowers the summed reward of successes; name the reward that says what a success is"
                    + (f", such as {others[0]!r}" if others else "")
                )
            self.source = "the summed reward"
        elif outcome in names:
            self.column, self.source = list(names).index(outcome), outcome
        elif ":" in outcome:
            self.function, self.source = load_function(outcome, "outcome"), outcome
        else:
            raise RollwiseError(f"outcome: no reward function {outcome!r}; {nearest(outcome, names)}")

    def read(self, columns: FloatArray, summed: FloatArray, own: FloatArray | None) -> list[Outcome]:
        """Outcomes of n rollouts.

        Args:
            columns: (n, F) reward per function, NaN where it abstained.
            summed: (n,) weighted sum, NaN where all abstained.
            own: (n,) what the outcome function returned, where one is set.

        Raises:
            RollwiseError: if the values cannot be read as outcomes; the message says what to set.
        """
        values = own if own is not None else summed if self.column is None else columns[:, self.column]
        if self.threshold is not None:
            values = np.where(np.isnan(values), np.nan, (values >= self.threshold).astype(np.float64))
        elif self.function is None and self.column is None:
            values = self._split(values)
        return [Outcome.of(float(value), source=f"outcome ({self.source})") for value in values]

    def _split(self, summed: FloatArray) -> FloatArray:
        self.seen |= {float(value) for value in np.unique(summed[~np.isnan(summed)])}
        high = {value for value in self.seen if value > 0}
        if len(high) > 1 or len(self.seen) > len(high) + 1:
            shown = ", ".join(f"{value:g}" for value in sorted(self.seen)[:4])
            raise RollwiseError(
                f"outcome: the summed reward takes values such as {shown}, so success is not plain; "
                "name one 0/1 reward function, or set outcome_threshold"
            )
        return np.where(np.isnan(summed), np.nan, (summed > 0).astype(np.float64))
