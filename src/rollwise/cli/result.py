"""What a training run ends with in the terminal: each arm's numbers, what differs, and what one seed cannot show."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollwise.cli.metrics_file import read_metrics

SHARES = {"dead_prompt_share": "dead prompts", "informative_rollout_share": "informative rollouts"}
WIDTH = 79
CAVEAT = (
    "one seed: a difference in accuracy of a few points is noise; benchmarks/demo.py in the repository repeats the "
    "demo over seeds"
)


def mean_shares(metrics: Path) -> dict[str, float]:
    """Mean over the logged steps of each of `SHARES`, those that an arm's `metrics.jsonl` holds."""
    rows = read_metrics(metrics)
    found = {}
    for name in SHARES:
        values = [row[f"rollwise/{name}"] for row in rows if row.get(f"rollwise/{name}") is not None]
        if values:
            found[name] = sum(values) / len(values)
    return found


def scores(evaluation: Mapping[str, float]) -> str:
    """ "greedy 0.512, sampled 0.433" of an evaluation."""
    return ", ".join(f"{kind} {evaluation[kind]:.3f}" for kind in ("greedy", "sampled") if kind in evaluation)


def result_lines(result: dict[str, Any]) -> list[str]:
    """The closing lines of a training run."""
    lines = [f"before training: {scores(result['before'])}"] if result["before"] else []
    for name, spent in result["rollouts_spent"].items():
        after = result["evaluation"][name]
        measured = f", {scores(after)}" if after else ""
        lost = result["rollouts_lost"][name]
        again = f" ({lost:,} more lost to a stop and made again)" if lost else ""
        lines += fold(f"{name}: {spent:,} rollouts{again} in {result['seconds'][name]:.0f} s{measured}")
    if len(result["rollouts_spent"]) > 1:
        lines += [*differences(result["shares"]), *fold(CAVEAT)]
    return [*lines, f"run folder: {result['run']}", *([f"report: {result['report']}"] if result["report"] else [])]


def differences(shares: Mapping[str, Mapping[str, float]]) -> list[str]:
    """One line for each of `SHARES` that several arms logged: its mean over the steps, arm by arm."""
    lines = []
    for key, label in SHARES.items():
        found = {arm: values[key] for arm, values in shares.items() if key in values}
        if len(found) > 1:
            lines += fold(f"{label}: " + ", ".join(f"{arm} {value:.1%}" for arm, value in found.items()))
    return lines


def fold(line: str, indent: int = 0) -> list[str]:
    """The line in pieces of at most `WIDTH` characters, broken between words; later ones are indented."""
    return textwrap.wrap(
        line, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    ) or [""]
