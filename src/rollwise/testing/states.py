"""Levers that carry something between steps: their state is plain data, and the same decisions follow from it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def carried_over(lever: Any, fresh: Any, kind: str) -> Any:
    """`fresh`, an unused copy of `lever`, after taking over its state through JSON and arrays.

    Raises:
        AssertionError: the state is no plain data, or cannot be taken over.
    """
    state = lever.state_dict()
    assert isinstance(state, dict), f"{kind} {lever.name}: state_dict gives {type(state).__name__}, not a dict"
    try:
        packed = json.loads(json.dumps(_without_arrays(state)))
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"{kind} {lever.name}: state_dict holds what is neither JSON-able nor an array ({error})"
        ) from None
    fresh.load_state_dict(_with_arrays(packed))
    return fresh


def check_metrics(lever: Any, kind: str) -> None:
    """Raise AssertionError unless `metrics()` are finite numbers by name."""
    for key, value in lever.metrics().items():
        assert isinstance(key, str) and np.isfinite(value), f"{kind} {lever.name}: metrics {key!r} is {value!r}"


def check_attributes(
    lever: Any, kind: str, methods: tuple[str, ...], sets: tuple[str, ...], needs: tuple[str, ...]
) -> None:
    """Raise AssertionError where a lever lacks its name, a method, a set of words, or needs what no trainer knows."""
    assert isinstance(getattr(lever, "name", None), str) and lever.name, f"name: give the {kind} a name, a string"
    for method in methods:
        assert callable(getattr(lever, method, None)), f"{kind} {lever.name}: has no method {method}"
    for name in sets:
        words = getattr(lever, name, None)
        assert isinstance(words, frozenset) and all(isinstance(word, str) for word in words), (
            f"{kind} {lever.name}: {name} must be a frozenset of words, which may be empty"
        )
    unknown = sorted(lever.needs - set(needs))
    assert not unknown, f"{kind} {lever.name}: needs {unknown[0]!r}, which no trainer knows; valid: {', '.join(needs)}"


def _without_arrays(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"__array__": value.tolist(), "dtype": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, dict):
        return {key: _without_arrays(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_arrays(entry) for entry in value]
    return value


def _with_arrays(value: Any) -> Any:
    if isinstance(value, dict) and "__array__" in value:
        return np.array(value["__array__"], dtype=value["dtype"]).reshape(value["shape"])
    if isinstance(value, dict):
        return {key: _with_arrays(entry) for key, entry in value.items()}
    return [_with_arrays(entry) for entry in value] if isinstance(value, list) else value
