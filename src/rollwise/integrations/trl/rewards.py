"""Reward functions that fail clearly, and the outcome read from what they return."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import nn
from trl.trainer.utils import is_async_callable

from rollwise.imports import load_function
from rollwise.suggest import nearest
from rollwise.types import FloatArray, Outcome, RollwiseError


def check_values(values: Any, expected: int, name: str) -> None:
    """Raise `RollwiseError` naming the function unless `values` are `expected` finite numbers, None or NaN."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise RollwiseError(
            f"reward function {name!r} returned {type(values).__name__}; return a list of numbers or None"
        )
    if len(values) != expected:
        raise RollwiseError(
            f"reward function {name!r} returned {len(values)} rewards for {expected} completions; return one each"
        )
    for value in values.tolist() if hasattr(values, "tolist") else values:
        if value is None:
            continue
        if not isinstance(value, numbers.Real) and not (hasattr(value, "item") and np.ndim(value) == 0):
            raise RollwiseError(
                f"reward function {name!r} returned {value!r}; a reward is a number, or None for unknown"
            )
        if math.isinf(float(value)):
            raise RollwiseError(f"reward function {name!r} returned {value}; a reward is finite, or None for unknown")


def checked(function: Callable[..., Any] | nn.Module, name: str) -> Callable[..., Any] | nn.Module:
    """The same reward function, whose faults are `RollwiseError`s that name it; reward models pass unchanged."""
    if isinstance(function, nn.Module):
        return function

    def fail(error: Exception) -> RollwiseError:
        return RollwiseError(f"reward function {name!r} raised {type(error).__name__}: {error}")

    if is_async_callable(function):

        async def score_async(*, completions: list[Any], **kwargs: Any) -> Any:
            try:
                values = await function(completions=completions, **kwargs)
            except Exception as error:
                raise fail(error) from error
            check_values(values, len(completions), name)
            return values

        return functools.update_wrapper(score_async, function, updated=())

    def score(*, completions: list[Any], **kwargs: Any) -> Any:
        try:
            values = function(completions=completions, **kwargs)
        except Exception as error:
            raise fail(error) from error
        check_values(values, len(completions), name)
        return values

    return functools.update_wrapper(score, function, updated=())


class OutcomeReader:
    """Turns rewards into outcomes: success, failure or unknown.

    `outcome` is the name of a reward function, `module:function`, a callable with a reward function's signature, or None.
    With None the weighted sum of rewards is read, as long as it only ever takes two values of which exactly one is
    positive (0 and 1, or -1 and 1): anything richer stops the run and asks for `outcome`.
    """

    def __init__(
        self,
        outcome: str | Callable[..., Any] | None,
        threshold: float | None,
        names: Sequence[str],
    ) -> None:
        """`names` are the reward functions' names, in column order.

        Raises:
            RollwiseError: if `outcome` names nothing known.
        """
        self.threshold = threshold
        self.function: Callable[..., Any] | None = None
        self.column: int | None = None
        self.seen: set[float] = set()
        if callable(outcome):
            self.function, self.source = outcome, getattr(outcome, "__name__", type(outcome).__name__)
        elif outcome is None:
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
