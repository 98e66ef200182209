"""Rows as they are published: out of a file, a folder or the hub, with faults named in one line."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rollwise.types import RollwiseError

if TYPE_CHECKING:
    from datasets import Dataset

READERS = {".jsonl": "json", ".jsonl.gz": "json", ".json": "json", ".json.gz": "json", ".parquet": "parquet"}
"""File ending -> reader of the `datasets` library."""


def read_file(path: Path, reader: str, split: str) -> Dataset:
    """Rows of a file, every one of them checked."""
    from datasets import load_dataset

    name = re.split(r"\W", split, maxsplit=1)[0] or "train"
    if path.stat().st_size == 0:
        raise RollwiseError(f"data.source: {path} is empty; give a file with rows")
    try:
        with _quiet():
            rows = load_dataset(reader, data_files={name: str(path)}, split=split)
        rows.data.table.validate(full=True)  # text that is no UTF-8 would come up only when its row is reached
        return rows
    # The readers raise errors of pyarrow, pandas, gzip and json alike; all mean that the file can't be read.
    except Exception as error:
        reason = find_fault(path)
        raise RollwiseError(f"data.source: {path}: {reason or _first_line(error)}") from error


def find_fault(path: Path) -> str | None:
    """What is wrong with a data file, of JSON with the line where it can be told; None where nothing is found."""
    if path.suffix == ".parquet":
        return _find_parquet_fault(path)
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            if ".jsonl" not in path.suffixes:
                json.load(lines)
                return None
            rows = 0
            for number, line in enumerate(lines, 1):
                rows += bool(line.strip())
                if line.strip() and not isinstance(json.loads(line), dict):
                    return f"line {number} is not a JSON object"
            return None if rows else "it has no rows"
    except json.JSONDecodeError as error:
        line_number = number if ".jsonl" in path.suffixes else error.lineno
        return f"line {line_number} is not valid JSON ({error.msg})"
    except UnicodeDecodeError:
        return f"{f'line {number}' if number else 'it'} is not UTF-8 text; save the file as UTF-8"
    except RecursionError:
        return f"{f'line {number}' if number else 'it'} is nested too deep"
    except (OSError, EOFError, zlib.error) as error:
        return f"unreadable after line {number} ({_first_line(error)})"


def _find_fault_below(folder: Path) -> str | None:
    """The first fault of a data file in a folder, with the file; None where nothing is found."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name.endswith((".jsonl", ".jsonl.gz", ".parquet")) and (fault := find_fault(path)):
            return f"{path.relative_to(folder)}: {fault}"
    return None


def _find_parquet_fault(path: Path) -> str | None:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        return None if ParquetFile(path).metadata.num_rows else "it has no rows"
    except (ArrowException, OSError) as error:
        return _first_line(error)


def read_hub(source: str, subset: str | None, split: str, revision: str | None = None, local: bool = False) -> Dataset:
    """Rows of a hub data set, or of a local folder; offline, from the hub's cache."""
    from datasets import load_dataset

    from rollwise.tasks.models import hub_reachable

    offline = not local and not hub_reachable()
    try:
        with _quiet(), _offline() if offline else nullcontext():
            # a folder by its whole path, since of "." the library can make no name
            rows = load_dataset(os.path.abspath(source) if local else source, subset, split=split, revision=revision)
        if local:
            rows.data.table.validate(full=True)
        return rows
    # As in `read_file`; the hub's client adds a dozen errors of its own.
    except Exception as error:
        if offline:
            message = f"{source} is no file and not in the hub's cache, and the hub is offline; give a local file"
        else:
            fault = _find_fault_below(Path(source)) if local else None
            message = f"{source} could not be loaded ({fault or _first_line(error)})"
        raise RollwiseError(f"data.source: {message}") from error


def _first_line(error: BaseException) -> str:
    cause = error.__cause__ or error
    text = (str(cause).strip().splitlines() or [""])[0]
    return f"{type(cause).__name__}: {text[:200]}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's progress bars and reports of its own, which would break up a run's lines."""
    import datasets

    bars, level = not datasets.are_progress_bars_disabled(), datasets.logging.get_verbosity()
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    try:
        yield
    finally:
        datasets.logging.set_verbosity(level)
        if bars:
            datasets.enable_progress_bars()


@contextmanager
def _offline() -> Iterator[None]:
    """With both libraries' offline switches on: only then is the cache looked at without half a minute of retries."""
    import datasets
    from huggingface_hub import constants

    switches = [(constants, constants.HF_HUB_OFFLINE), (datasets.config, datasets.config.HF_HUB_OFFLINE)]
    for holder, _ in switches:
        holder.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for holder, before in switches:
            holder.HF_HUB_OFFLINE = before
