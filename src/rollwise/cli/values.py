"""Values as people give them: shown in short, checked for numbers that are none, read as a field's type."""

from __future__ import annotations

import math
import reprlib
from typing import Any

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
