"""The picture of a plan: the population, how rollouts are divided, and what that weighs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rollwise.cli.picture import save_picture
from rollwise.pool import Pool
from rollwise.types import RollwiseError

PALETTE = ("#3b7dd8", "#d97a2b", "#2f9e6e", "#a35bc4", "#c2475a")
UNIFORM = "#8b929c"


def draw(result: dict[str, Any], pool: Pool, path: str | Path) -> Path:
    """Write the picture of what `plan.run` found; returns its path.

    Raises:
        RollwiseError: matplotlib is not installed, or the file cannot be written.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
        from matplotlib.ticker import PercentFormatter
    except ImportError as error:
        raise RollwiseError(f"picture: {error.name} is not installed; pip install 'rollwise[report]'") from None
    methods: dict[str, Any] = result["methods"]
    palette = iter(PALETTE * len(methods))
    colours = {name: UNIFORM if name == "uniform" else next(palette) for name in methods}
    style = {"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left", "font.size": 9}
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.6, 6.6), layout="constrained", facecolor="white")
        (people, spread), (sizes, weights) = figure.subplots(2, 2)

        edges = np.linspace(0, 1, 21)
        people.hist(pool.rates, bins=edges, weights=pool.shares, color="#c9d3df", edgecolor="white")
        n = result["rollouts_per_prompt"]
        p = np.linspace(0, 1, 201)
        chance = people.twinx()
        chance.plot(p, p**n + (1 - p) ** n, color="#c2475a", linewidth=1.5)
        chance.set_ylim(0, 1)
        chance.set_ylabel(f"chance that a group of {n} is dead", color="#c2475a")
        chance.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        chance.spines["right"].set_visible(True)
        people.set_title(f"population, mean rate {result['mean_rate']:.2f}")
        people.set_xlabel("success rate p")
        people.set_ylabel("share of prompts")
        people.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))

        names = ("dead_prompt_share", "informative_rollout_share", "unsolved_share")
        width = 0.8 / len(methods)
        for k, (name, found) in enumerate(methods.items()):
            at = np.arange(3) + (k - (len(methods) - 1) / 2) * width
            bars = [1.96 * found["standard_error"][key] for key in names]
            heights = [found[key] for key in names]
            spread.bar(at, heights, width * 0.9, yerr=bars, color=colours[name], label=name, error_kw={"lw": 1})
        spread.set_xticks(range(3), ["dead\nprompts", "informative\nrollouts", "unsolved\nprompts"])
        spread.set_ylim(0, 1)
        spread.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        spread.set_title("a step, expected")
        spread.legend(frameon=False, loc="upper right")

        for name, found in methods.items():
            counts = np.array([int(count) for count in found["n_shares"]])
            below = np.cumsum(list(found["n_shares"].values()))
            top = max(int(found["n"]["100"]) for found in methods.values()) + 1
            x, y = np.append(counts, top), np.append(below, 1.0)
            sizes.step(np.append(0, x), np.append(0.0, y), where="post", color=colours[name], label=name)
        sizes.set_xlim(left=0)
        sizes.set_ylim(0, 1.03)
        sizes.set_xlabel("rollouts n of a prompt")
        sizes.set_title("share of prompts with at most n rollouts")
        sizes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))

        for name, found in methods.items():
            curve = found["weight"]
            weights.plot(curve["rates"], curve["weight"], color=colours[name], label=name, marker=".", markersize=5)
            weights.fill_between(curve["rates"], curve["low"], curve["high"], color=colours[name], alpha=0.18, lw=0)
        weights.set_xlim(0, 1)
        weights.set_ylim(bottom=0)
        weights.set_xlabel("success rate p")
        weights.set_title(f"effective weight w(p) under {result['advantage']}")
        return save_picture(figure, path)
