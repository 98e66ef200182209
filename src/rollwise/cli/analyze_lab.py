"""`rollwise analyze gain | dynamics`: what runs show beyond their final accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table

from rollwise.types import RollwiseError

Series = dict[str, dict[str, list[float]]]
"""Arm to metric to its value at every step."""


def run_gain(folders: Sequence[str | Path], limit: int = 128) -> dict[str, Any]:
    """Difficulty entropy of each task of the folders and what each arm gained there over uniform, JSON-able.

    `correlation` is Pearson's, of the mean relative gain over arms with the entropy; None below three tasks.

    Raises:
        RollwiseError: no folder, or one that holds no runs of the lab.
    """
    from rollwise.lab.entropy import gains

    if not folders:
        raise RollwiseError("folder: none given; give one that rollwise lab wrote, such as runs/lab/first")
    points = [point for folder in folders for point in gains(folder, limit)]
    pairs = [(point["entropy"], mean_gain(point)) for point in points if point["gain"]]
    entropies, mean = (np.array(column) for column in zip(*pairs, strict=True)) if pairs else (np.zeros(0),) * 2
    related = len(pairs) > 2 and entropies.std() > 0 and mean.std() > 0
    found = float(np.corrcoef(entropies, mean)[0, 1]) if related else None
    return {"limit": limit, "points": points, "correlation": found}


def mean_gain(point: dict[str, Any]) -> float:
    """Mean relative gain over the arms of a task."""
    return float(np.mean([gain["mean"] for gain in point["gain"].values()]))


def gain_table(result: dict[str, Any]) -> Group:
    """The result for a terminal."""
    table = Table("task", "pool", "entropy", "mean gain", "best arm", "")
    for point in sorted(result["points"], key=lambda point: point["entropy"]):
        arm = max(point["gain"], key=lambda name: point["gain"][name]["mean"], default="")
        best = f"{point['gain'][arm]['mean']:+.1%}" if arm else ""
        mean = f"{mean_gain(point):+.1%}" if arm else ""
        table.add_row(point["task"], point["pool"], f"{point['entropy']:.3f}", mean, arm, best)
    found = result["correlation"]
    said = "correlation of mean gain with entropy: " + (f"{found:+.2f}" if found is not None else "needs three tasks")
    return Group("(accuracy - uniform's) / uniform's, means over seeds and arms", table, said)


def run_dynamics(folder: str | Path) -> dict[str, Any]:
    """Per task and arm: confidence, mean absolute advantage and token update weight of every step, JSON-able.

    `folder` is one that `rollwise lab` wrote, or `rollwise train`, whose data set stands for the task. `change` compares
    the mean over the last tenth of the steps with that over the first.

    Raises:
        RollwiseError: a folder of neither, or runs that did not record them.
    """
    from rollwise.lab.dynamics import DYNAMICS

    if (Path(folder) / "run.json").is_file():
        found = trained_series(Path(folder), DYNAMICS)
    else:
        found = lab_series(Path(folder), DYNAMICS)
    tasks = {
        task: {
            arm: {name: {"steps": values, "change": change(values)} for name, values in own.items()}
            for arm, own in series.items()
        }
        for task, series in found.items()
    }
    return {"folder": str(folder), "tasks": tasks}


def lab_series(folder: Path, names: Sequence[str]) -> dict[str, Series]:
    """By task and arm, the mean over seeds of what every step logged.

    Raises:
        RollwiseError: a folder without runs of the lab, or runs that did not record them.
    """
    from rollwise.lab.entropy import mean_series
    from rollwise.lab.results import read_results

    _, results = read_results(folder)
    tasks = dict.fromkeys(result["task"] for result in results)
    return {task: mean_series([result for result in results if result["task"] == task], names) for task in tasks}


def trained_series(folder: Path, names: Sequence[str]) -> dict[str, Series]:
    """By data set and arm of a run of `rollwise train`, what every step logged.

    Raises:
        RollwiseError: a folder that is damaged or has no trained step, or steps that did not log them.
    """
    from rollwise.report.run_data import read_run

    run = read_run(folder)
    found = {arm.name: {name: arm.series(name)[1].tolist() for name in names} for arm in run.arms}
    for arm, series in found.items():
        if missing := [name for name, values in series.items() if not values]:
            raise RollwiseError(f"folder: arm {arm} logged no rollwise/{missing[0]}; train it again with this version")
    return {str(run.config["data"]["source"]): found}


def change(values: Sequence[float]) -> dict[str, float]:
    """Mean over the first and the last tenth."""
    tenth = max(1, len(values) // 10)
    return {"first": float(np.mean(values[:tenth])), "last": float(np.mean(values[-tenth:]))}


def dynamics_table(result: dict[str, Any]) -> Group:
    """The result for a terminal."""
    parts: list[Any] = []
    for task, arms in result["tasks"].items():
        table = Table(task, "confidence", "mean |advantage|", "token update weight")
        for arm, own in arms.items():
            moves = (entry["change"] for entry in own.values())
            table.add_row(arm, *(f"{move['first']:.3f} -> {move['last']:.3f}" for move in moves))
        parts.append(table)
    return Group("mean over the first tenth of the steps -> over the last", *parts)
