"""What a command prints: lines, tables, or one JSON object."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")]


def show(lines: Sequence[str], result: dict[str, Any], as_json: bool) -> None:
    """Print lines, or one JSON object (a number that does not exist, NaN, as null)."""
    print(json.dumps(finite(result)) if as_json else "\n".join(lines))


def show_tables(tables: Any, soft_wrap: bool = False) -> None:
    """Print what `rich` can render; it is imported here, since commands of plain lines start faster without it."""
    from rich.console import Console

    Console(highlight=False, soft_wrap=soft_wrap).print(tables)


def finite(value: Any) -> Any:
    """The same data with NaN and infinities replaced by None, as JSON knows neither."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
