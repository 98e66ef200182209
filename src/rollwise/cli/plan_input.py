"""What `rollwise plan` reads: a histogram of pass rates, a file of counts, or a Beta, each as a pool."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.beliefs import parse_prior
from rollwise.pool import Pool
from rollwise.types import RollwiseError

FORMS = '{"successes": 3, "trials": 8}, {"correct": [1, 0, 1]} or {"correct": [3, 5], "n_per_visit": 8}'


def read_pool(
    rates: str | None = None, counts: str | Path | None = None, prior: str | None = None, visit: int = 0
) -> tuple[Pool, str]:
    """The pool and one line on where it is from; without any source, Beta(1,1).

    Raises:
        RollwiseError: more than one source, or one that cannot be read.
    """
    given = [name for name, value in (("--rates", rates), ("--counts", counts), ("--prior", prior)) if value]
    if len(given) > 1:
        raise RollwiseError(f"{' and '.join(given)}: give one of them")
    if rates:
        return read_rates(rates), f"pass rates of {rates}" if Path(rates).is_file() else "pass rates as given"
    if counts:
        successes, trials = read_counts(Path(counts), visit)
        pool = Pool.from_counts(successes, trials)
        a, b = pool.prior or (1.0, 1.0)
        return pool, f"{len(trials)} prompts of {counts}, {int(trials.sum())} rollouts; fitted Beta({a:.3g},{b:.3g})"
    a, b = parse_prior(prior)
    return Pool.beta(a, b), f"Beta({a:g},{b:g})"


def read_rates(text: str) -> Pool:
    """A histogram "rate:share,rate:share,...", or a JSON file: {"rate": share}, [[rate, share], ...] or [rate, ...].

    Raises:
        RollwiseError: text or file that is none of these, or a rate outside [0, 1].
    """
    try:
        if Path(text).is_file():
            found = json.loads(Path(text).read_text(encoding="utf-8"))
            if isinstance(found, dict):
                found = list(found.items())
            pairs = [entry if isinstance(entry, (list, tuple)) else (entry, 1.0) for entry in found]
        else:
            pairs = [entry.split(":") for entry in text.split(",")]
        histogram = [(float(rate), float(share)) for rate, share in pairs]
    except (TypeError, ValueError, OSError):
        raise RollwiseError(
            f"--rates {text!r}: write rate:share,rate:share, such as 0:0.3,0.5:0.7, or give a JSON file of them"
        ) from None
    return Pool.histogram([rate for rate, _ in histogram], [share for _, share in histogram])


def read_counts(path: Path, visit: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Successes and trials (P,) of a JSONL file, plain or gzip, one prompt a line (`FORMS`).

    With `n_per_visit`, `correct` lists successes at successive visits and `visit` picks one (-1: the last; prompts with
    fewer visits are left out).

    Raises:
        RollwiseError: naming the file and the line.
    """
    rows: list[tuple[int, int]] = []
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    rows += count_of(line, visit, f"--counts {path}:{number}")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise RollwiseError(f"--counts {path}: {reason}; give a JSONL file of {FORMS}") from None
    if not rows:
        raise RollwiseError(f"--counts {path}: no prompt with counts; write lines such as {FORMS}")
    successes, trials = np.array(rows, dtype=np.int64).T
    return successes, trials


def count_of(line: str, visit: int, where: str) -> list[tuple[int, int]]:
    """Successes and trials of one line; empty where the prompt had no such visit."""
    try:
        row: dict[str, Any] = json.loads(line)
        if "n_per_visit" in row:
            if not -len(row["correct"]) <= visit < len(row["correct"]):
                return []
            pair = row["correct"][visit], row["n_per_visit"]
        elif isinstance(row.get("correct"), list):
            pair = sum(row["correct"]), len(row["correct"])
        else:
            pair = row["successes"], row["trials"]
        s, n = int(pair[0]), int(pair[1])
        if (s, n) != tuple(pair) or not 0 <= s <= n:
            raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError):
        raise RollwiseError(f"{where}: write {FORMS}") from None
    return [(s, n)]
