"""The second half of an error line: which valid value was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(given: str, valid: Iterable[str]) -> str:
    """ "did you mean X?" where one valid name is close, else "valid: A, B, C"."""
    names = sorted(set(valid))
    close = get_close_matches(given, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"valid: {', '.join(names)}"
