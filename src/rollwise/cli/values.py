"""Values as people give them: shown in short, checked for numbers that are none, read as a field's type."""

from __future__ import annotations

import math
import re
import reprlib
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rollwise.cli.switches import refuse_switch
from rollwise.types import RollwiseError

SHOWN = reprlib.Repr()
SHOWN.maxlevel, SHOWN.maxdict, SHOWN.maxlist, SHOWN.maxtuple, SHOWN.maxset = 3, 4, 6, 6, 6
SHOWN.maxstring = SHOWN.maxlong = SHOWN.maxother = 80


def short(value: Any) -> str:
    """A value in at most a few dozen characters; never slow, whatever the value stands for."""
    try:
        return " ".join(SHOWN.repr(value).split())
    except ValueError:  # an integer of thousands of digits has no text
        return "a number too long to show"


def check_finite(value: Any, place: str) -> None:
    """Raise `RollwiseError` naming the place of the first number in `value` that is infinite or NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        raise RollwiseError(f"{place}: {value}; give a finite number")
    if isinstance(value, dict):
        for key, entry in value.items():
            check_finite(entry, f"{place}.{short(key) if not isinstance(key, str) else key}")
    elif isinstance(value, (list, tuple)):
        for index, entry in enumerate(value):
            check_finite(entry, f"{place}.{index}")


def read_as(kind: Any, value: Any, place: str) -> Any:
    """The value as a type, as pydantic reads it: "1e-3" is a float, 3 is no text; true is no number, though.

    Raises:
        RollwiseError: naming the place, where it cannot be read so.
    """
    refuse_switch(value, kind, place)
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError:
        words = kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")
        raise RollwiseError(f"{place}: {short(value)} does not fit; it takes {plain(words)}") from None


def plain(words: str) -> str:
    """A type's name without the modules it is from: "transformers.x.SchedulerType | str" is "SchedulerType | str"."""
    return re.sub(r"\b\w+\.(?:\w+\.)*(?=\w)", "", words)
