"""Which run folder was meant: the folder itself, or the latest whose name starts like it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from rollwise.types import RollwiseError


def find_run(path: Path) -> Path:
    """The run folder at `path`, else the latest of those beside it whose names start with its name.

    Raises:
        RollwiseError: where there is none; names the nearest run folder.
    """
    if is_run(path):
        return path
    beside = runs_in(path.parent)
    alike = [run for run in beside if path.name and run.name.startswith(path.name)]
    if alike:
        return latest(alike)
    inside = runs_in(path)
    if inside:
        hint = f"the latest in it is {latest(inside)}"
    elif nearby := beside or runs_in(path.parent / "runs"):
        close = get_close_matches(path.name, [run.name for run in nearby], n=1, cutoff=0.5)
        named = [run for run in nearby if run.name in close]
        hint = f"the nearest is {named[0]}" if named else f"the latest is {latest(nearby)}"
    else:
        hint = "give one that rollwise train wrote"
    raise RollwiseError(f"report: {path} is not a run folder (no run.json); {hint}")


def is_run(path: Path) -> bool:
    """Whether `rollwise train` wrote this folder."""
    return (path / "run.json").is_file() and (path / "config.yaml").is_file()


def runs_in(folder: Path) -> list[Path]:
    """The run folders directly in a folder, by name."""
    return sorted(path for path in folder.iterdir() if is_run(path)) if folder.is_dir() else []


def latest(runs: Iterable[Path]) -> Path:
    """The run that was started last, by its record; those without a readable one count as the earliest."""
    return max(runs, key=lambda run: (started(run), run.name))


def started(run: Path) -> str:
    """When a run was started, as it is written in `run.json`; empty where that cannot be read."""
    try:
        return str(json.loads((run / "run.json").read_text(encoding="utf-8"))["started"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
