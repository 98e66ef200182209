"""What a folder of the lab holds, read back; a damaged file is named in one line that says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rollwise.lab.summary import summarise
from rollwise.lab.warmup import Warmup
from rollwise.types import RollwiseError

SHARED = "experiment.json"
"""File of what all runs of a folder share."""


def read_results(folder: str | Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Shared settings and all finished runs of a folder of the lab.

    Raises:
        RollwiseError: a folder that holds none, or a damaged file.
    """
    path = Path(folder)
    files = sorted(path.glob("*/*/seed-*.json"))
    if not files or not (path / SHARED).is_file():
        raise RollwiseError(f"folder: {path} holds no runs of the lab; give one that rollwise lab wrote")
    return read_shared(path), [read_result(file) for file in files]


def read_shared(folder: Path) -> dict[str, Any]:
    """The shared settings of a folder.

    Raises:
        RollwiseError: a file that cannot be read or does not hold them.
    """
    path = folder / SHARED
    remedy = "its runs may be of any settings, so give another folder"
    found = read_json(path, remedy)
    try:
        training = dict(found["training"])
        Warmup(**training["warmup"])
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, error, remedy) from None
    return training


def read_result(path: Path, arm: str | None = None) -> dict[str, Any]:
    """The result of a run, of an arm of that name where one is given.

    Raises:
        RollwiseError: a file that cannot be read, is no result, or is that of another arm.
    """
    remedy = "remove it, and rollwise lab makes the run again"
    result = read_json(path, remedy)
    try:
        summarise([result])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise damaged(path, error, remedy) from None
    if arm is not None and result["arm"] != arm:
        raise RollwiseError(f"out: {path} holds a run of {result['arm']}, not of {arm}; {remedy}")
    return result


def read_json(path: Path, remedy: str) -> dict[str, Any]:
    """The object of a JSON file.

    Raises:
        RollwiseError: a file that cannot be read or holds no object; the message ends in `remedy`.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RollwiseError(f"out: {path} cannot be read ({error.strerror}); {remedy}") from None
    except (ValueError, RecursionError) as error:
        raise damaged(path, error, remedy) from None
    if not isinstance(found, dict):
        raise RollwiseError(f"out: {path} is damaged (it holds no object); {remedy}")
    return found


def damaged(path: Path, error: Exception, remedy: str) -> RollwiseError:
    """The error that says so."""
    return RollwiseError(f"out: {path} is damaged ({type(error).__name__}: {' '.join(str(error).split())}); {remedy}")
