"""Reward functions that fail clearly and cannot disturb each other."""

from __future__ import annotations

import asyncio
import copy
import functools
import math
import numbers
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn
from trl.trainer.utils import is_async_callable

from rollwise.types import RollwiseError

LARGEST = float(np.finfo(np.float32).max)
"""TRL keeps rewards in single precision."""

PLAIN = frozenset({str, int, float, bool, type(None)})
"""Values that nobody can change, so that copying a long list of them copies the list only."""


def read_values(values: Any, expected: int, name: str) -> list[float | None]:
    """What a reward function returned as (expected,) numbers or None: a list, a tuple, an array or a tensor.

    Raises:
        RollwiseError: naming the function, for anything but `expected` finite numbers, None or NaN.
    """
    kind = type(values).__name__
    if hasattr(values, "tolist") and np.ndim(values) > 0:
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        raise RollwiseError(f"reward function {name!r} returned {kind}; return a list of numbers or None")
    if len(values) != expected:
        raise RollwiseError(
            f"reward function {name!r} returned {len(values)} rewards for {expected} completions; return one each"
        )
    return [_read_value(value, name) for value in values]


def _read_value(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if hasattr(value, "item") and np.ndim(value) == 0:
        value = value.item()
    if not isinstance(value, numbers.Real):
        raise RollwiseError(
            f"reward function {name!r} returned {one_line(repr(value))}; a reward is a number, or None for unknown"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if abs(number) > LARGEST:
        raise RollwiseError(
            f"reward function {name!r} returned {number:g}; a reward is finite (below {LARGEST:.2g}), or None for unknown"
        )
    return number


def checked(function: Callable[..., Any] | nn.Module, name: str) -> Callable[..., Any] | nn.Module:
    """The same reward function, whose faults are `RollwiseError`s that name it; reward models pass unchanged.

    It works on copies of its own: what it does to completions or columns reaches no other function and no log.
    """
    if isinstance(function, nn.Module):
        return function

    def fail(error: Exception) -> RollwiseError:
        return RollwiseError(f"reward function {name!r} raised {type(error).__name__}: {one_line(str(error))}")

    if is_async_callable(function):

        async def score_async(*, completions: list[Any], **kwargs: Any) -> list[float | None]:
            try:
                values = await function(completions=own_copy(completions), **_own_copies(kwargs))
            except Exception as error:
                raise fail(error) from error
            return read_values(values, len(completions), name)

        return functools.update_wrapper(score_async, function, updated=())

    def score(*, completions: list[Any], **kwargs: Any) -> list[float | None]:
        try:
            values = function(completions=own_copy(completions), **_own_copies(kwargs))
        except Exception as error:
            raise fail(error) from error
        return read_values(values, len(completions), name)

    return functools.update_wrapper(score, function, updated=())


def finish(values: Any) -> Any:
    """The result of a call that may have been asynchronous, waited for in a thread of its own (notebooks run a loop)."""
    if not asyncio.iscoroutine(values):
        return values
    done: list[Any] = []

    def wait() -> None:
        try:
            done.extend((asyncio.run(values), None))
        except BaseException as error:
            done.extend((None, error))

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    result, error = done
    if error is not None:
        raise error
    return result


def own_copy(value: Any) -> Any:
    """A copy of `value` that shares nothing changeable with it; quick for long lists of numbers or strings."""
    if isinstance(value, list):
        return list(value) if PLAIN.issuperset(map(type, value)) else [own_copy(part) for part in value]
    if isinstance(value, dict):
        return {key: own_copy(part) for key, part in value.items()}
    return value if type(value) in PLAIN else copy.deepcopy(value)


def _own_copies(arguments: dict[str, Any]) -> dict[str, Any]:
    """Copies of what comes one per row (lists); the trainer's state and its loggers are passed as they are."""
    return {name: own_copy(value) if isinstance(value, list) else value for name, value in arguments.items()}


def one_line(text: str, width: int = 200) -> str:
    """The text without line breaks, cut where it is long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 3] + "..."
