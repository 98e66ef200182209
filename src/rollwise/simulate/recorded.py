"""Recorded outcomes of real models: how often each prompt was solved, visit by visit or model by model.

Read from JSON Lines (plain or gzip), one prompt a line, in one of the `FORMS`. Two records are shipped (`SHIPPED`, see
`data/README.md`); a path that does not exist is looked for in the folder ROLLWISE_DATA names.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.beliefs.fit import check_counts, pad
from rollwise.types import IntArray, RollwiseError

SHIPPED = {"rlvr": "rlvr_qwen25math1.5b.jsonl.gz", "math_cot8": "qwen25math_cot8.jsonl.gz"}
FORMS = (
    '{"successes": 3, "trials": 8}, {"correct": [1, 0]}, {"correct": [3, 5], "n_per_visit": 8} '
    'or {"runs": {"x": [3, 8]}}'
)


@dataclass(frozen=True, eq=False)
class RecordedLog:
    """P prompts at up to T visits in order: `successes` and `trials` (P, T), no trials where a prompt had no such visit."""

    ids: tuple[str, ...]
    successes: IntArray
    trials: IntArray

    @property
    def visits(self) -> int:
        """T."""
        return self.trials.shape[1]

    def visit(self, index: int) -> tuple[IntArray, IntArray]:
        """Counts (P',) of the prompts that had visit `index`; -1 is each prompt's own last.

        Raises:
            RollwiseError: no prompt has that visit.
        """
        seen = self.trials > 0
        last = self.visits - 1 - np.argmax(seen[:, ::-1], axis=1)
        at = last + 1 + index if index < 0 else np.full(len(self.ids), index)
        rows = np.flatnonzero((at >= 0) & (at < self.visits))
        rows = rows[seen[rows, at[rows]]]
        if not len(rows):
            raise RollwiseError(f"pool: no prompt has visit {index}; give one from 0 to {self.visits - 1}")
        return self.successes[rows, at[rows]], self.trials[rows, at[rows]]


def read_log(source: str | Path) -> RecordedLog:
    """The log of a file or shipped record; a line without visits is one visit, a line with `runs` is refused.

    Raises:
        RollwiseError: naming the file and the line.
    """
    rows = []
    for where, row in read_rows(source):
        if "runs" in row:
            raise RollwiseError(f"{where}: counts of several models, not visits; name one as {source}#{first(row)}")
        rows.append((row, counts_of(row, where)))
    ids = tuple(str(row.get("id", k)) for k, (row, _) in enumerate(rows))
    return RecordedLog(ids, *pad([counts for _, counts in rows]))


def read_counts(source: str | Path, part: str = "") -> tuple[IntArray, IntArray]:
    """Successes and trials (P,) of one visit (`part` a number, by default the first) or one model's run (its name).

    Raises:
        RollwiseError: a file that cannot be read, a visit or run it lacks.
    """
    rows = list(read_rows(source))
    if "runs" not in rows[0][1]:
        if not part.lstrip("-").isdigit() and part:
            raise RollwiseError(f"pool: {source}#{part}: a visit is a whole number, such as {source}#0")
        return read_log(source).visit(int(part or 0))
    names = sorted({name for _, row in rows for name in row.get("runs", {})})
    if part not in names:
        raise RollwiseError(f"pool: {source}#{part}: name one of its {len(names)} runs, such as #{names[0]}")
    pairs = [row["runs"][part] for _, row in rows if part in row.get("runs", {})]
    try:
        return check_counts(*np.array(pairs).T)
    except (ValueError, TypeError):
        raise RollwiseError(f"pool: {source}#{part}: counts are [successes, trials], such as [3, 8]") from None


def read_rows(source: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where it stands, and the object, of every line.

    Raises:
        RollwiseError: a file that is missing, damaged or empty, or a line that is no JSON object.
    """
    path = find(source)
    empty = True
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise RollwiseError(f"{path}:{number}: write {FORMS}")
                    empty = False
                    yield f"{path}:{number}", row
    except json.JSONDecodeError:
        raise RollwiseError(f"{path}: a line is not JSON; write {FORMS}") from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise RollwiseError(f"pool: {path}: {reason}; give a JSONL file of {FORMS}") from None
    if empty:
        raise RollwiseError(f"pool: {path} holds no prompt; write lines such as {FORMS}")


def find(source: str | Path) -> Path:
    """The path of a shipped record or file, also below ROLLWISE_DATA."""
    if str(source) in SHIPPED:
        return Path(__file__).parent / "data" / SHIPPED[str(source)]
    path = Path(source)
    data = os.environ.get("ROLLWISE_DATA")
    if data and not path.exists() and (Path(data) / path).exists():
        return Path(data) / path
    return path


def counts_of(row: dict[str, Any], where: str) -> tuple[IntArray, IntArray]:
    """Successes and trials (T,) of one line, visit by visit.

    Raises:
        RollwiseError: a line of none of the forms.
    """
    try:
        if "n_per_visit" in row:
            successes, trials = row["correct"], [row["n_per_visit"]] * len(row["correct"])
        elif "correct" in row:
            successes, trials = [sum(row["correct"])], [len(row["correct"])]
        else:
            successes, trials = [row["successes"]], [row["trials"]]
        return check_counts(successes, trials)
    except (KeyError, TypeError, ValueError):
        raise RollwiseError(f"{where}: write {FORMS}") from None


def first(row: dict[str, Any]) -> str:
    """The name of a line's first run."""
    return next(iter(row["runs"]), "NAME")
