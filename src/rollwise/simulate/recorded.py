"""Recorded outcomes of real models: how often each prompt was solved, visit by visit or model by model.

Read from JSON Lines (plain or gzip), one prompt a line, in one of the `FORMS`. Two records are shipped (`SHIPPED`, see
`data/README.md`); a path that does not exist is looked for in the folder ROLLWISE_DATA names.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
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
TEXT = "utf-8-sig"
"""UTF-8, with or without a byte-order mark."""
MOST_TRIALS = 1_000_000
"""Of one prompt: a prior is fitted in memory and time that grow with them."""


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
            raise RollwiseError(
                f"{where}: counts of several models, not visits; name one as {source}#{next(iter(runs_of(row, where)))}"
            )
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
        if part and not re.fullmatch(r"-?[0-9]{1,9}", part):
            raise RollwiseError(f"pool: {source}#{part}: a visit is a whole number, such as {source}#0")
        return read_log(source).visit(int(part or 0))
    runs = [(where, runs_of(row, where)) for where, row in rows if "runs" in row]
    names = sorted({name for _, own in runs for name in own})
    if part not in names:
        raise RollwiseError(f"pool: {source}#{part}: name one of its {len(names)} runs, such as #{names[0]}")
    pairs = [whole_counts([own[part][:1], own[part][1:]], where) for where, own in runs if part in own]
    successes, trials = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return successes, trials


def read_rows(source: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where it stands, and the object, of every line.

    Raises:
        RollwiseError: a file that is missing, damaged or empty, or a line that is no JSON object.
    """
    return read_lines(find(source), "pool: ", FORMS)


def read_lines(path: Path, setting: str, forms: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where it stands, and the object, of every line of a JSON Lines file, plain or gzip.

    Raises:
        RollwiseError: beginning with `setting` and ending with `forms`, what may be written: a file that is missing,
            damaged or empty, or a line that is no JSON object.
    """
    empty = True
    try:
        with gzip.open(path, "rt", encoding=TEXT) if path.suffix == ".gz" else path.open(encoding=TEXT) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    empty = False
                    yield f"{setting}{path}:{number}", read_object(line, f"{setting}{path}:{number}", forms)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise RollwiseError(f"{setting}{path}: {reason}; give a JSONL file of {forms}") from None
    if empty:
        raise RollwiseError(f"{setting}{path}: no prompt with counts; write lines such as {forms}")


def read_object(line: str, where: str, forms: str) -> dict[str, Any]:
    """The object of a line.

    Raises:
        RollwiseError: a line that is none.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise RollwiseError(f"{where}: write {forms}")
    return row


def find(source: str | Path) -> Path:
    """The path of a shipped record or file, also below ROLLWISE_DATA."""
    if str(source) in SHIPPED:
        return Path(__file__).parent / "data" / SHIPPED[str(source)]
    path = Path(source)
    data = os.environ.get("ROLLWISE_DATA")
    if data and not path.exists() and (Path(data) / path).exists():
        return Path(data) / path
    return path


def counts_of(row: dict[str, Any], where: str, forms: str = FORMS) -> tuple[IntArray, IntArray]:
    """Successes and trials (T,) of one line, visit by visit.

    Raises:
        RollwiseError: a line of none of the forms.
    """
    try:
        if "n_per_visit" in row:
            pair = [row["correct"], [row["n_per_visit"]] * len(row["correct"])]
        elif "correct" in row:
            pair = [[sum(row["correct"])], [len(row["correct"])]]
        else:
            pair = [[row["successes"]], [row["trials"]]]
    except (KeyError, TypeError):
        raise RollwiseError(f"{where}: write {forms}") from None
    return whole_counts(pair, where, forms)


def whole_counts(pair: Sequence[Any], where: str, forms: str = FORMS) -> tuple[IntArray, IntArray]:
    """Successes and trials (T,), checked.

    Raises:
        RollwiseError: anything but lists of as many whole numbers, 0 <= successes <= trials <= `MOST_TRIALS`.
    """
    try:
        trials = np.asarray(pair[1], dtype=np.float64)
        if trials.size and trials.max() > MOST_TRIALS:
            raise RollwiseError(f"{where}: {trials.max():g} trials of one prompt; give at most {MOST_TRIALS:,}")
        if trials.ndim != 1 or np.isnan(trials).any():
            raise ValueError
        with np.errstate(invalid="ignore"):
            return check_counts(*pair)
    except RollwiseError as error:
        raise error if str(error).startswith(where) else RollwiseError(f"{where}: write {forms}") from None
    except (TypeError, ValueError, OverflowError):
        raise RollwiseError(f"{where}: write {forms}") from None


def runs_of(row: dict[str, Any], where: str) -> dict[str, list[Any]]:
    """The runs of a line by name, each a list of two.

    Raises:
        RollwiseError: none, or anything else.
    """
    runs = row["runs"]
    if not (isinstance(runs, dict) and runs and all(isinstance(own, list) and len(own) == 2 for own in runs.values())):
        raise RollwiseError(f"{where}: write {FORMS}")
    return runs
