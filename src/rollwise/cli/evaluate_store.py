"""The folder of an evaluation: its settings, and completions appended as they are judged, so that a kill loses little."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from rollwise.types import RollwiseError

Key = tuple[str, int, int]
"""Kind ("greedy" or "sampled"), row, sample."""


class EvaluationStore:
    """`settings.json`, `completions.jsonl` and, at the end, `completions.parquet` and `results.json` in one folder."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Open the folder, or make it.

        Raises:
            RollwiseError: it holds something else, or an evaluation with other settings (the first that differs).
        """
        self.folder = folder
        self.done: dict[Key, dict[str, Any]] = {}
        stated: dict[str, Any] = json.loads(json.dumps(settings, default=str))
        kept = folder / "settings.json"
        if kept.is_file():
            self._compare(json.loads(kept.read_text(encoding="utf-8")), stated)
        elif folder.exists() and any(folder.iterdir()):
            raise RollwiseError(f"--out: {folder} holds something else; give a new or empty folder")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            draft = folder / "settings.json.part"
            draft.write_text(json.dumps(stated, indent=1) + "\n", encoding="utf-8")
            draft.rename(kept)
        self._lines = self._open(folder / "completions.jsonl")

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append judged completions; those that are there already stay as they are."""
        for row in rows:
            key = key_of(row)
            if key not in self.done:
                self.done[key] = row
                print(json.dumps(row, ensure_ascii=False), file=self._lines)
        self._lines.flush()

    def finish(self, results: Mapping[str, Any]) -> None:
        """Write the results and the table of completions, each whole or not at all."""
        import pandas as pd

        self._lines.close()
        table = self.folder / "completions.parquet.part"
        pd.DataFrame(self.in_order()).to_parquet(table, index=False)
        table.rename(self.folder / "completions.parquet")
        draft = self.folder / "results.json.part"
        draft.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        draft.rename(self.folder / "results.json")

    def in_order(self) -> list[dict[str, Any]]:
        """All completions, greedy ones first, by row and sample."""
        return [self.done[key] for key in sorted(self.done)]

    def _compare(self, kept: dict[str, Any], asked: dict[str, Any]) -> None:
        for name in {**kept, **asked}:
            if kept.get(name) != asked.get(name):
                raise RollwiseError(
                    f"--out: {self.folder} holds an evaluation with {name} {kept.get(name)!r}, not {asked.get(name)!r}; "
                    "give another folder"
                )

    def _open(self, path: Path) -> TextIO:
        """Read what is there, cut off a line that a kill left unfinished, and open for appending."""
        whole = 0
        if path.exists():
            with path.open("rb") as lines:
                for line in lines:
                    try:
                        row = json.loads(line)
                    except ValueError:
                        break
                    if not line.endswith(b"\n"):
                        break
                    self.done[key_of(row)] = row
                    whole += len(line)
            os.truncate(path, whole)
        return path.open("a", encoding="utf-8")


def key_of(row: Mapping[str, Any]) -> Key:
    """What a completion is known by."""
    return str(row["kind"]), int(row["row"]), int(row["sample"])
