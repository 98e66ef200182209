"""`true` and `false` where a number belongs: pydantic reads them as 1 and 0, and a run of one step would follow."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from rollwise.types import RollwiseError


def refuse_switches(given: Any, model: type[BaseModel], place: str = "") -> None:
    """Raise `RollwiseError` for the first setting of `model` in `given` that takes a number and was given a switch."""
    if not isinstance(given, Mapping):
        return
    for name, field in model.model_fields.items():
        if name in given:
            _check(given[name], field.annotation, f"{place}{name}")


def _check(value: Any, kind: Any, place: str) -> None:
    refuse_switch(value, kind, place)
    for each in parts(kind):
        if isinstance(each, type) and issubclass(each, BaseModel):
            refuse_switches(value, each, f"{place}.")
        elif get_origin(each) is list and isinstance(value, list):
            for index, entry in enumerate(value):
                _check(entry, get_args(each)[0], f"{place}.{index}")


def refuse_switch(value: Any, kind: Any, place: str) -> None:
    """Raise `RollwiseError` where `value` is true or false and `kind` takes numbers, but no switch."""
    kinds = parts(kind)
    if isinstance(value, bool) and any(each in (int, float) for each in kinds) and bool not in kinds:
        raise RollwiseError(f"{place}: {str(value).lower()} is a switch and no number; give a number, such as 1")


def parts(kind: Any) -> list[Any]:
    """The types a union stands for, annotations taken off; a type that is no union by itself."""
    if get_origin(kind) is Annotated:
        return parts(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [part for each in get_args(kind) for part in parts(each)]
    return [kind]
