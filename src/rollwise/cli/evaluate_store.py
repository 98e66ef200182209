"""The folder of an evaluation: its settings, and completions appended as they are judged, so that a kill loses little."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import BaseModel, Field, ValidationError

from rollwise.cli.run_folder import reason_of
from rollwise.cli.values import short
from rollwise.file_lock import claim
from rollwise.types import RollwiseError

Key = tuple[str, int, int]
"""Kind ("greedy" or "sampled"), row, sample."""

SETTINGS, COMPLETIONS, RESULTS = "settings.json", "completions.jsonl", "results.json"
DRAFT = ".part"
"""Ending of a file that is being written; what a kill leaves of it is of no use."""


class Row(BaseModel):
    """One line of `completions.jsonl`: a completion and what the verifier said of it."""

    kind: Literal["greedy", "sampled"]
    row: int
    sample: int
    completion: str
    tokens: int = Field(ge=0, lt=1 << 63)
    ended: bool
    outcome: Literal["success", "failure", "unknown"]
    reason: str
    answer: str | None


class EvaluationStore:
    """`settings.json`, `completions.jsonl` and, at the end, `completions.parquet` and `results.json` in one folder.

    Used with `with`; one process at a time has it.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], keys: Collection[Key]) -> None:
        """Open the folder, or make it; `keys` are those of all completions that the evaluation is to have.

        Raises:
            RollwiseError: it cannot be a folder or is another process's, holds something else or damaged settings, or an
                evaluation with other settings (the first that differs).
        """
        self.folder = folder
        self.done: dict[Key, dict[str, Any]] = {}
        self.damaged: list[int] = []
        """Numbers of the lines that are no completion of this evaluation; they are left where they are."""
        stated: dict[str, Any] = json.loads(json.dumps(settings, default=str))
        with self._named_faults():
            folder.mkdir(parents=True, exist_ok=True)
            held = {path.name for path in folder.iterdir()}
            lines = folder / COMPLETIONS
            begun = RESULTS in held or (COMPLETIONS in held and lines.stat().st_size > 0)
            if SETTINGS not in held and (begun or held - {SETTINGS + DRAFT, COMPLETIONS}):
                raise RollwiseError(f"--out: {folder} holds something else; give a new or empty folder")
            self._lines = lines.open("a+b")
            try:
                self._claim()
                if begun:
                    self._compare(read_settings(folder / SETTINGS), stated)
                else:  # with nothing made yet, other settings harm nothing
                    write_json(folder / SETTINGS, stated)
                self._read(self._lines, set(keys))
            except BaseException:
                self._lines.close()
                raise

    def __enter__(self) -> EvaluationStore:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):  # of what could not be written, which `add` has told of
            self._lines.close()

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append judged completions; those that are there already stay as they are."""
        for row in rows:
            key = key_of(row)
            if key not in self.done:
                self.done[key] = row
                with self._named_faults():
                    self._lines.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        with self._named_faults():
            self._lines.flush()

    def finish(self, results: Mapping[str, Any]) -> None:
        """Write the results and the table of completions, each whole or not at all."""
        import pandas as pd

        with self._named_faults():
            table = self.folder / f"completions.parquet{DRAFT}"
            pd.DataFrame(self.in_order()).to_parquet(table, index=False)
            table.replace(self.folder / "completions.parquet")
            write_json(self.folder / RESULTS, results)

    def in_order(self) -> list[dict[str, Any]]:
        """All completions, greedy ones first, by row and sample."""
        return [self.done[key] for key in sorted(self.done)]

    def _claim(self) -> None:
        if claim(self._lines) is False:
            raise RollwiseError(
                f"--out: {self.folder} is being written by another process; let that end, or give another folder"
            )

    def _compare(self, kept: dict[str, Any], asked: dict[str, Any]) -> None:
        before, now = dict(flatten(kept)), dict(flatten(asked))
        for name in {**before, **now}:
            if before.get(name) != now.get(name):
                raise RollwiseError(
                    f"--out: {self.folder} holds an evaluation with {name} {short(before.get(name))}, "
                    f"not {short(now.get(name))}; give another folder"
                )

    def _read(self, lines: BinaryIO, keys: Collection[Key]) -> None:
        """Take in what is there, and cut off a last line that a kill left unfinished."""
        lines.seek(0)
        whole = 0
        ended = True
        for number, line in enumerate(lines, start=1):
            row, ended = read_row(line), line.endswith(b"\n")
            if row is not None and key_of(row) in keys:
                self.done[key_of(row)] = row
            elif not ended:
                lines.truncate(whole)
                return
            elif line.strip():
                self.damaged.append(number)
            whole += len(line)
        if not ended:
            lines.write(b"\n")

    @contextlib.contextmanager
    def _named_faults(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            place = error.filename or self.folder
            raise RollwiseError(
                f"--out: {place} cannot be written ({reason_of(error)}); give a folder with room and write access"
            ) from error


def key_of(row: Mapping[str, Any]) -> Key:
    """What a completion is known by."""
    return str(row["kind"]), int(row["row"]), int(row["sample"])


def read_row(line: bytes) -> dict[str, Any] | None:
    """The completion in a line; None where there is none."""
    try:
        return Row.model_validate_json(line, strict=True).model_dump()
    except ValidationError:
        return None


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a file.

    Raises:
        RollwiseError: it holds none.
    """
    try:
        settings = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise RollwiseError(f"--out: {path} is damaged: it holds no settings; put it right, or give another folder")
    return settings


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file, whole or not at all."""
    draft = path.with_name(path.name + DRAFT)
    draft.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)


def flatten(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting with its whole name, "data.limit"."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{above}{name}.")
        else:
            yield above + name, value
