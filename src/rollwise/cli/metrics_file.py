"""`metrics.jsonl` of an arm: one JSON object a line, each with its step."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from rollwise.types import RollwiseError


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics file, none if it is absent; a last line that was cut short is left out.

    Raises:
        RollwiseError: naming the line that is damaged.
    """
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            break
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or type(row.get("step")) is not int:
            raise RollwiseError(f"metrics: {path} line {number} is damaged; delete that line to go on without it")
        rows.append(row)
    return rows


def forget_after(path: Path, step: int) -> float:
    """Take away the rows of steps after `step`, which are made again, and a line that was cut short.

    Returns the seconds of training that the last row left had taken, 0 where there is none.

    Raises:
        RollwiseError: naming the line that is damaged.
    """
    kept = [row for row in read_metrics(path) if row["step"] <= step]
    if path.exists():
        draft = path.with_suffix(".tmp")
        draft.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        os.replace(draft, path)
    seconds = kept[-1].get("seconds", 0.0) if kept else 0.0
    return float(seconds) if isinstance(seconds, (int, float)) else 0.0
