"""What an evaluation's completions add up to: accuracies with intervals, whole and by group, and how it went."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.tasks.scores import interval, majority_at_k, pass_at_k
from rollwise.types import FloatArray

Score = dict[str, Any]


def summarise(
    completions: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Sequence[Any]],
    prompts: int,
    ks: Sequence[int],
    seed: int,
) -> dict[str, Any]:
    """Scores of judged completions over `prompts` prompts.

    `scores` maps `greedy`, `avg@n`, `pass@k` and `maj@k` to their mean over prompts, its 95 % bootstrap interval and the
    number of prompts it is over; `groups` holds the same for every value of each group column (P values each).
    """
    values = per_prompt(completions, prompts, ks, seed)
    by_group = {
        name: {
            str(value): {score: describe(numbers[chosen], seed, bounds=False) for score, numbers in values.items()}
            for value in sorted(set(column), key=str)
            if (chosen := np.array([entry == value for entry in column])).any()
        }
        for name, column in groups.items()
    }
    return {
        "scores": {score: describe(numbers, seed) for score, numbers in values.items()},
        "groups": by_group,
        "completions": {kind: _course(completions, kind) for kind in ("greedy", "sampled")},
    }


def per_prompt(
    completions: Sequence[Mapping[str, Any]], prompts: int, ks: Sequence[int], seed: int
) -> dict[str, FloatArray]:
    """Score -> (P,) its value for each prompt, NaN where it has none (unknown verdicts, too few samples)."""
    found: dict[str, FloatArray] = {}
    greedy, sampled = (_by_prompt(completions, kind, prompts) for kind in ("greedy", "sampled"))
    if any(greedy):
        found["greedy"] = np.array([_mean(_verdicts(rows)) for rows in greedy])
    if not any(sampled):
        return found
    n = max(len(rows) for rows in sampled)
    found[f"avg@{n}"] = np.array([_mean(_verdicts(rows)) for rows in sampled])
    for k in ks:
        found[f"pass@{k}"] = np.array([_pass(_verdicts(rows), k) for rows in sampled])
    rng = np.random.default_rng(seed)
    for k in (k for k in ks if k > 2):  # of two votes, none wins
        found[f"maj@{k}"] = np.array(
            [majority_at_k([row["answer"] for row in rows], _verdicts(rows), k, rng) for rows in sampled]
        )
    return found


def describe(numbers: FloatArray, seed: int, bounds: bool = True) -> Score:
    """Mean, interval and number of prompts of one score."""
    known = numbers[~np.isnan(numbers)]
    score: Score = {"value": float(known.mean()) if len(known) else math.nan, "prompts": len(known)}
    if bounds:
        score["low"], score["high"] = interval(numbers, seed)
    return score


def _course(completions: Sequence[Mapping[str, Any]], kind: str) -> dict[str, Any] | None:
    rows = [row for row in completions if row["kind"] == kind]
    if not rows:
        return None
    share: Callable[[str], float] = lambda test: sum(bool(TESTS[test](row)) for row in rows) / len(rows)  # noqa: E731
    return {
        "count": len(rows),
        "tokens": float(np.mean([row["tokens"] for row in rows])),
        **{test: share(test) for test in TESTS},
        "reasons": dict(Counter(f"{row['outcome']}: {row['reason']}"[:80] for row in rows).most_common(12)),
        "unknown_for": dict(Counter(row["reason"] for row in rows if TESTS["unknown"](row)).most_common(3)),
    }


TESTS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "unknown": lambda row: row["outcome"] == "unknown",
    "no_answer": lambda row: row["answer"] is None,
    "cut_off": lambda row: not row["ended"],
}
"""Shares of completions: not judged, without an answer, ended by the limit of tokens."""


def _by_prompt(completions: Sequence[Mapping[str, Any]], kind: str, prompts: int) -> list[list[Mapping[str, Any]]]:
    rows: list[list[Mapping[str, Any]]] = [[] for _ in range(prompts)]
    for row in completions:
        if row["kind"] == kind:
            rows[row["row"]].append(row)
    return rows


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    return [{"success": 1.0, "failure": 0.0}.get(row["outcome"], math.nan) for row in rows]


def _mean(verdicts: Sequence[float]) -> float:
    known = [verdict for verdict in verdicts if not math.isnan(verdict)]
    return sum(known) / len(known) if known else math.nan


def _pass(verdicts: Sequence[float], k: int) -> float:
    known = [verdict for verdict in verdicts if not math.isnan(verdict)]
    return pass_at_k(len(known), int(sum(known)), k)
