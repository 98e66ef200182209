"""What `rollwise plan` reads: a histogram of pass rates, a file of counts, or a Beta, each as a pool."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.beliefs import parse_prior
from rollwise.pool import Pool
from rollwise.simulate.recorded import TEXT, counts_of, read_lines
from rollwise.types import RollwiseError

FORMS = '{"successes": 3, "trials": 8}, {"correct": [1, 0, 1]} or {"correct": [3, 5], "n_per_visit": 8}'


def read_pool(
    rates: str | None = None, counts: str | Path | None = None, prior: str | None = None, visit: int = 0
) -> tuple[Pool, str]:
    """The pool and one line on where it is from; without any source, Beta(1,1).

    Raises:
        RollwiseError: more than one source, or one that cannot be read.
    """
    given = [
        name for name, value in (("--rates", rates), ("--counts", counts), ("--prior", prior)) if value is not None
    ]
    if len(given) > 1:
        raise RollwiseError(f"{' and '.join(given)}: give one of them")
    if rates is not None:
        return read_rates(rates), f"pass rates of {rates}" if os.path.isfile(rates) else "pass rates as given"
    if counts is not None:
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
        # a path's own is_file fails on text longer than names may be
        if os.path.isfile(text):
            found = json.loads(Path(text).read_text(encoding=TEXT))
            if isinstance(found, dict):
                found = list(found.items())
            pairs = [entry if isinstance(entry, (list, tuple)) else (entry, 1.0) for entry in found]
        else:
            pairs = [entry.split(":") for entry in text.split(",")]
        histogram = [(float(rate), float(share)) for rate, share in pairs]
    except (TypeError, ValueError, OverflowError, RecursionError, OSError):
        raise RollwiseError(
            f"--rates {text!r}: write rate:share,rate:share, such as 0:0.3,0.5:0.7, or give a JSON file of them"
        ) from None
    return Pool.histogram([rate for rate, _ in histogram], [share for _, share in histogram])


def read_counts(path: Path, visit: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Successes and trials (P,) of a JSONL file, plain or gzip, one prompt a line (`FORMS`).

    With `n_per_visit`, `correct` lists successes at successive visits and `visit` picks one (-1: the last; prompts with
    fewer visits are left out). Prompts without trials are left out.

    Raises:
        RollwiseError: naming the file and the line.
    """
    rows = [count_of(row, visit, where) for where, row in read_lines(path, "--counts ", FORMS)]
    known = [pair for pair in rows if pair is not None and pair[1]]
    if not known:
        raise RollwiseError(f"--counts {path}: no prompt with counts; write lines such as {FORMS}")
    successes, trials = np.array(known, dtype=np.int64).T
    return successes, trials


def count_of(row: dict[str, Any], visit: int, where: str) -> tuple[int, int] | None:
    """Successes and trials of one line; None where the prompt had no such visit."""
    successes, trials = counts_of(row, where, FORMS)
    at = visit if "n_per_visit" in row else 0
    return (int(successes[at]), int(trials[at])) if -len(trials) <= at < len(trials) else None
