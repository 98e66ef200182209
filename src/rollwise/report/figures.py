"""The figures of a report, as SVG text that takes the page's text colour, so that it suits light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollwise.report.run_data import ArmData
from rollwise.types import FloatArray, IntArray

TEXT = "#010203"
"""Stands for the page's own text colour until the SVG is written."""
PALETTE = ("#3b7dd8", "#d97a2b", "#2f9e6e", "#a35bc4", "#c2475a")
UNIFORM = "#8b929c"
STYLE = {
    "svg.fonttype": "none",
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


def colours(arms: Sequence[ArmData]) -> dict[str, str]:
    """A colour for each arm: grey for the uniform ones, the palette for the others."""
    palette = iter(PALETTE * len(arms))
    return {arm.name: next(palette) if arm.adaptive else UNIFORM for arm in arms}


def reward_figure(arms: Sequence[ArmData]) -> str:
    """Mean reward over prompts in the first wave of each step, against rollouts spent."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.5), layout="constrained")
        axes = figure.subplots()
        draw_series(axes, {arm.name: (arm.spent, arm.first_wave) for arm in arms}, colours(arms))
        axes.set_ylabel("mean reward over prompts, first wave")
        axes.legend(loc="lower right")
        return as_svg(figure, "reward")


def signal_figure(arms: Sequence[ArmData]) -> str:
    """Share of prompts without signal, and share of rollouts with signal, against rollouts spent."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.1), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, name in ((left, "dead_prompt_share"), (right, "informative_rollout_share")):
            draw_series(axes, {arm.name: arm.series(name) for arm in arms}, colours(arms))
        left.set_title("prompts whose group is dead")
        right.set_title("rollouts in groups with signal")
        left.set_ylim(0, 1)
        left.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
        right.legend(loc="best")
        return as_svg(figure, "signal")


def allocation_figure(arms: Sequence[ArmData], group: int) -> str:
    """Rollouts of a prompt in a step against its success rate there, and how often each size occurred.

    `group` is G, the size uniform allocation gives, drawn dashed.
    """
    adaptive = [arm for arm in arms if arm.adaptive and len(arm.n)]
    colour = colours(arms)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.5), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(3, 2), sharey=True)
        for arm in adaptive:
            at, mean, low, high = by_success_rate(arm.n, arm.known, arm.successes)
            left.fill_between(at, low, high, color=colour[arm.name], alpha=0.18, linewidth=0)
            left.plot(at, mean, color=colour[arm.name], marker="o", markersize=4, linewidth=1.6, label=arm.name)
            sizes, shares = size_shares(arm.n)
            right.barh(sizes, shares, height=0.8, color=colour[arm.name], alpha=0.75 if len(adaptive) == 1 else 0.45)
        for axes in (left, right):
            label = f"uniform, {group} each" if axes is left else None
            axes.axhline(group, color=UNIFORM, linestyle=(0, (4, 3)), linewidth=1.4, label=label)
        left.set_xlabel("success rate of the prompt in that step")
        left.set_ylabel("rollouts of the prompt in that step")
        left.set_ylim(bottom=0)
        left.yaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
        left.set_xlim(-0.03, 1.03)
        left.legend(loc="best")
        right.set_xlabel("share of prompt-steps")
        right.xaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0, decimals=0))
        return as_svg(figure, "allocation")


def draw_series(axes: Axes, series: Mapping[str, tuple[FloatArray, FloatArray]], colour: Mapping[str, str]) -> None:
    """Each arm's values against rollouts spent: every step faintly, the running mean over it; NaN is left out."""
    for name, (spent, values) in series.items():
        spent, values = spent[~np.isnan(values)], values[~np.isnan(values)]
        if not len(values):
            continue
        axes.plot(spent, values, color=colour[name], alpha=0.22, linewidth=0.8)
        axes.plot(spent, running_mean(values), color=colour[name], linewidth=1.9, label=name)
    axes.set_xlabel("rollouts spent")
    axes.xaxis.set_major_formatter(mpl.ticker.EngFormatter(sep=""))
    axes.grid(axis="y", color=TEXT, alpha=0.1, linewidth=0.7)


def running_mean(values: FloatArray) -> FloatArray:
    """(T,) centred running mean over about a tenth of the run, narrower at the ends."""
    half = max(1, len(values) // 20)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    first, last = np.maximum(at - half, 0), np.minimum(at + half + 1, len(values))
    return (sums[last] - sums[first]) / (last - first)


def by_success_rate(
    n: IntArray, known: IntArray, successes: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sizes by success rate: bin centre, mean, and the 10th and 90th percentile of n, for the bins that occur.

    All wrong (0) and all right (1) are bins of their own, with ten between; prompt-steps without outcome are left out.
    """
    judged = known > 0
    n, rate = n[judged], successes[judged] / known[judged]
    edges = np.linspace(0.0, 1.0, 11)
    place = np.where(rate == 0, 0, np.where(rate == 1, 11, np.clip(np.digitize(rate, edges), 1, 10)))
    centres = np.concatenate([[0.0], (edges[1:] + edges[:-1]) / 2, [1.0]])
    held = np.unique(place)
    groups = [n[place == index] for index in held]
    return (
        centres[held],
        np.array([group.mean() for group in groups], dtype=np.float64),
        np.array([np.percentile(group, 10) for group in groups], dtype=np.float64),
        np.array([np.percentile(group, 90) for group in groups], dtype=np.float64),
    )


def size_shares(n: IntArray) -> tuple[IntArray, FloatArray]:
    """The sizes that occurred and the share of prompt-steps each had."""
    sizes, counts = np.unique(n, return_counts=True)
    return sizes, counts / counts.sum()


def as_svg(figure: Figure, name: str) -> str:
    """The figure as an `<svg>` element in the page's fonts and text colour; the same figure gives the same text."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(TEXT, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r"(font: [^;\"']*?[\d.]+px) [^;\"]+", r"\1 system-ui, sans-serif", svg)
