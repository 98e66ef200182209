"""The picture of `rollwise simulate`: shares by method, and the rates over steps where they move."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.cli.picture import save_picture
from rollwise.types import RollwiseError

SHARES = {
    "dead_prompt_share": "dead prompts",
    "informative_rollout_share": "informative rollouts",
    "unsolved_share": "unsolved prompts",
}


def draw(result: dict[str, Any], rows: Sequence[dict[str, Any]], path: str | Path) -> Path:
    """Write it.

    Raises:
        RollwiseError: matplotlib is missing, or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RollwiseError("picture: matplotlib is not installed; pip install 'rollwise[report]'") from None
    methods = result["methods"]
    curves = any(row["curve"] for row in rows)
    figure = Figure(figsize=(11 if curves else 7, 4), layout="constrained")
    panels = figure.subplots(1, 2 if curves else 1, squeeze=False)[0]
    places, width = np.arange(len(SHARES)), 0.8 / len(methods)
    for k, (label, found) in enumerate(methods.items()):
        means = [found["metrics"][name]["mean"] for name in SHARES]
        errors = [1.96 * found["metrics"][name]["error"] for name in SHARES]
        panels[0].bar(places + (k - (len(methods) - 1) / 2) * width, means, width, yerr=errors, label=label)
    panels[0].set_xticks(places, SHARES.values())
    panels[0].set_ylabel("share (95 % interval)")
    panels[0].legend(fontsize="small")
    if curves:
        for label in methods:
            own = np.array([row["curve"] for row in rows if row["method"] == label and row["curve"]])
            stride = -(-result["setting"]["steps"] // own.shape[1])
            panels[1].plot(1 + stride * np.arange(own.shape[1]), own.mean(axis=0), label=label)
        panels[1].set_xlabel("step")
        panels[1].set_ylabel("mean success rate of the population")
    return save_picture(figure, path)
