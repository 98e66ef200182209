"""What a command prints: lines, tables, or one JSON object."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TextIO

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")]

WIDTH = 200
"""Columns of tables that go to a file or a pipe."""

_results: list[TextIO] = []
"""The stream that results go to while everything else is kept from it."""


@contextlib.contextmanager
def results_alone() -> Iterator[None]:
    """Within it only `show` writes to standard output; what users' functions and libraries print goes to standard error."""
    _results.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _results.pop()


def show(lines: Sequence[str], result: dict[str, Any], as_json: bool) -> None:
    """Print lines, or one JSON object (a number that does not exist, NaN, as null)."""
    stream = _results[-1] if _results else sys.stdout
    print(json.dumps(finite(result)) if as_json else "\n".join(lines), file=stream, flush=True)


def show_tables(tables: Any, soft_wrap: bool = False) -> None:
    """Print what `rich` can render; it is imported here, since commands of plain lines start faster without it."""
    from rich.console import Console

    # a file has no width to keep to, and a table that is cut to fit one loses digits
    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    Console(highlight=False, soft_wrap=soft_wrap, width=WIDTH if wide else None).print(tables)


def finite(value: Any) -> Any:
    """The same data with NaN and infinities replaced by None, as JSON knows neither."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
