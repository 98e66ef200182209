"""Figures of `rollwise analyze`, as PNG or whatever else the path ends in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.cli.picture import save_picture
from rollwise.types import RollwiseError


def figure_of(rows: int, columns: int, width: float = 4.0, height: float = 3.2) -> tuple[Any, Any]:
    """A figure and its (rows, columns) axes.

    Raises:
        RollwiseError: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RollwiseError("figure: matplotlib is not installed; pip install 'rollwise[report]'") from None
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Any, path: str | Path) -> None:
    """Write a figure.

    Raises:
        RollwiseError: the path cannot be written.
    """
    save_picture(figure, path, "figure", dpi=130)


def draw_difficulty(result: dict[str, Any], path: str | Path) -> None:
    """Histograms of the rollout that first solved a prompt, one series per pool."""
    pools = result["pools"]
    figure, axes = figure_of(1, 1, 7.5, 3.6)
    bins = next(iter(pools.values()))["bins"]
    width = 0.8 / len(pools)
    for k, (name, entry) in enumerate(pools.items()):
        places = np.arange(len(bins)) + (k - (len(pools) - 1) / 2) * width
        axes[0, 0].bar(places, entry["shares"], width, label=f"{name}, entropy {entry['entropy']:.2f}")
    axes[0, 0].set_xticks(range(len(bins)), bins)
    axes[0, 0].set_xlabel("first solved at rollout")
    axes[0, 0].set_ylabel("share of prompts")
    axes[0, 0].legend(fontsize="small")
    save(figure, path)


def draw_allocation(pools: Mapping[str, Mapping[str, Any]], even: float, path: str | Path) -> None:
    """Rollouts of a prompt against its mean reward, a panel per pool and utility; `even` is what uniform gives.

    `pools` maps pool -> utility -> `rollwise.simulate.allocation.Picture`.
    """
    utilities = list(next(iter(pools.values())))
    figure, axes = figure_of(len(pools), len(utilities), 2.4, 2.4)
    rng = np.random.default_rng(0)
    for row, (pool, drawn) in zip(axes, pools.items(), strict=True):
        for panel, name in zip(row, utilities, strict=True):
            seen = drawn[name]
            # prompts of the same counts would hide each other
            moved = seen.counts + rng.uniform(-0.25, 0.25, len(seen.counts))
            panel.plot(seen.reward, moved, ".", markersize=2, alpha=0.25)
            panel.axhline(even, color="grey", linestyle="--", linewidth=1)
            panel.set_title(f"{pool}: {name}", fontsize=7)
            panel.set_ylim(bottom=0)
    for panel in axes[-1]:
        panel.set_xlabel("mean reward", fontsize=8)
    for row in axes:
        row[0].set_ylabel("rollouts", fontsize=8)
    save(figure, path)


def draw_gain(result: dict[str, Any], path: str | Path) -> None:
    """Relative gain over uniform against difficulty entropy, a point per task and arm."""
    figure, axes = figure_of(1, 1, 6.5, 4.0)
    arms = list(dict.fromkeys(arm for point in result["points"] for arm in point["gain"]))
    for arm in arms:
        held = [point for point in result["points"] if arm in point["gain"]]
        gain = [100 * point["gain"][arm]["mean"] for point in held]
        axes[0, 0].plot([point["entropy"] for point in held], gain, "o", alpha=0.7, label=arm)
    axes[0, 0].axhline(0, color="grey", linewidth=1)
    axes[0, 0].set_xlabel("difficulty entropy of the start")
    axes[0, 0].set_ylabel("gain over uniform, %")
    if len(arms) <= 12:
        axes[0, 0].legend(fontsize="x-small")
    save(figure, path)


def draw_dynamics(result: dict[str, Any], path: str | Path) -> None:
    """Each quantity over steps, a row per task."""
    tasks = result["tasks"]
    names = list(next(iter(next(iter(tasks.values())).values())))
    figure, axes = figure_of(len(tasks), len(names))
    for row, (task, arms) in zip(axes, tasks.items(), strict=True):
        for panel, name in zip(row, names, strict=True):
            for arm, own in arms.items():
                values = own[name]["steps"]
                panel.plot(range(1, 1 + len(values)), values, linewidth=1, label=arm)
            panel.set_title(f"{task}: {name.replace('_', ' ')}", fontsize=9)
            panel.set_xlabel("step", fontsize=8)
        if len(arms) <= 10:
            row[0].legend(fontsize="x-small")
    save(figure, path)


def draw_curves(results: list[dict[str, Any]], path: str | Path) -> None:
    """Test accuracy against rollouts spent, a panel per task: each arm's mean over the seeds that all arms have."""
    tasks = list(dict.fromkeys(result["task"] for result in results))
    figure, axes = figure_of(1, len(tasks), 5.0, 4.0)
    for panel, task in zip(axes[0], tasks, strict=True):
        own = [result for result in results if result["task"] == task]
        arms = dict.fromkeys(result["arm"] for result in own)
        # seeds differ more than arms do, so means over different seeds would mislead
        seeds = set.intersection(*({run["seed"] for run in own if run["arm"] == arm} for arm in arms))
        if not seeds:
            raise RollwiseError(f"folder: the methods share no seed on {task}; run them on the same seeds")
        for arm in arms:
            curves = [run["curve"] for run in own if run["arm"] == arm and run["seed"] in seeds]
            length = min(map(len, curves))
            spent = np.mean([[point["rollouts"] for point in curve[:length]] for curve in curves], axis=0)
            mean = np.mean([[point["sampled"] for point in curve[:length]] for curve in curves], axis=0)
            style = {"color": "black", "linewidth": 2} if arm == "uniform" else {"linewidth": 1.2}
            panel.plot(spent, mean, label=f"{arm}, {len(curves)} seeds", **style)
        panel.set_title(task)
        panel.set_xlabel("rollouts spent")
        panel.legend(fontsize="x-small")
    axes[0, 0].set_ylabel("accuracy at temperature 1")
    save(figure, path)
