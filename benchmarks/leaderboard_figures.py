"""The leaderboard's figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rollwise.cli.analyze_figures import draw_curves
from rollwise.lab.summary import ALL
from rollwise.utilities import UTILITIES


def draw_all(report: dict[str, Any], results: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write what the report has data for: learning curves, differences, weight curves."""
    shown = ("uniform", *UTILITIES)
    draw_curves([result for result in results if result["arm"] in shown], folder / "leaderboard_curves.png")
    rows = {}
    for name in ("screen", "weights", "settings", "choose", "finalists"):
        for row in report["stages"].get(name, []):
            if row["task"] == ALL:
                rows[row["arm"]] = row
    for row in report["stages"].get("confirm", []):
        if "final_difference" in row:
            rows[f"{row['arm']} [confirmation: {row['task']}]"] = row
    draw_differences(rows, folder / "leaderboard_differences.png")
    published = {row["arm"]: row for row in report["stages"].get("methods", []) if row["task"] == ALL}
    for name in ("method_families", "method_finalists"):
        published |= {row["arm"]: row for row in report["stages"].get(name, []) if row["task"] == ALL}
    if published:
        draw_differences(published, folder / "leaderboard_methods.png")
    if "weight_curves" in report:
        draw_weights(report["weight_curves"], folder / "leaderboard_weights.png")


def draw_differences(rows: dict[str, dict[str, Any]], path: Path) -> None:
    """Paired difference to uniform of the same loss with its interval, final accuracy left, area right."""
    labels = list(rows)[::-1]
    figure = Figure(figsize=(11, 1.2 + 0.24 * len(labels)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, name in zip(panels, ("final_difference", "area_difference"), strict=True):
        for place, label in enumerate(labels):
            gap = rows[label][name]
            low, high = gap["interval"] or (gap["mean"], gap["mean"])
            colour = "tab:green" if low > 0 else "tab:red" if high < 0 else "grey"
            panel.plot([low, high], [place, place], color=colour, linewidth=2)
            panel.plot(gap["mean"], place, "o", color=colour, markersize=4)
        panel.axvline(0, color="black", linewidth=0.8)
        panel.set_title(name.replace("_", " ") + " to uniform, 95 % interval", fontsize=9)
    panels[0].set_yticks(
        range(len(labels)), [f"{label}, {rows[label]['seeds']} seeds" for label in labels], fontsize=7
    )
    figure.savefig(path, dpi=120)


def draw_weights(curves: dict[str, Any], path: Path) -> None:
    """w(p) of every rule, raw advantages left, divided by the deviation right."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, advantage in zip(panels, ("dr_grpo", "grpo"), strict=True):
        for name, own in curves[advantage].items():
            style = {"color": "black", "linewidth": 2} if name == "uniform" else {"linewidth": 1.3}
            low, high = (np.array(own[each], dtype=np.float64) for each in ("low", "high"))
            (line,) = panel.plot(curves["rates"], own["weight"], label=name, **style)
            panel.fill_between(curves["rates"], low, high, color=line.get_color(), alpha=0.12, linewidth=0)
        panel.set_xlabel("true success rate p")
        panel.set_title(f"weight on a prompt's gradient, advantage {advantage}, mean 1", fontsize=9)
        panel.set_ylim(0, None)
    panels[0].legend(fontsize="x-small")
    figure.savefig(path, dpi=120)
