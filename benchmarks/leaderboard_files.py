"""The leaderboard's files: how its runs were made, one line a run, and the report."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from machine import describe

from rollwise.lab import measures


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    return [rounded(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def line_of(shape: str, result: dict[str, Any]) -> dict[str, Any]:
    """What is kept of one run."""
    kept = {
        key: result[key]
        for key in ("task", "arm", "seed", "steps", "rollouts", "tokens", "trained_rollouts", "seconds")
    }
    dead = result["metrics"]["dead_prompt_share"]
    more = measures(result) | {"start": result["curve"][0]["sampled"], "dead": sum(dead) / len(dead)}
    kept["updates"] = updates(result)
    return {"shape": shape} | kept | rounded(more)


def updates(result: dict[str, Any]) -> int:
    """Updates of a run: its steps, idle ones left out."""
    return sum(trained > 0 for trained in result["metrics"]["trained_rollouts"])


def calls(options: argparse.Namespace) -> list[dict[str, Any]]:
    """How the runs were made: one entry for every call that ran some, kept beside them."""
    path = options.runs / "made.json"
    found: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    if not options.summary:
        found.append(describe() | {"started": time.strftime("%Y-%m-%d %H:%M")})
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n")
    return found


def unique(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({(result["task"], result["arm"], result["seed"]): result for result in results}.values())


def write(path: Path, report: dict[str, Any], lines: list[dict[str, Any]]) -> None:
    """The report so far; what an earlier call found in other parts stays."""
    before = json.loads(path.read_text()) if path.exists() else {}
    stages = before.get("stages", {}) | report["stages"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(before | report | {"stages": stages}, indent=1) + "\n")
    runs = path.with_name(path.stem + "_runs.jsonl")
    old = [json.loads(line) for line in runs.read_text().splitlines()] if runs.exists() else []
    merged = {(line["shape"], line["task"], line["arm"], line["seed"]): line for line in (*old, *lines)}
    runs.write_text("".join(json.dumps(merged[each]) + "\n" for each in sorted(merged)))
