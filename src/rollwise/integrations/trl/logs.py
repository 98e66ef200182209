"""Making the trainer's logs of a step made in several waves say what one block would have said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.types import FloatArray


def lengths_metrics(lengths: FloatArray, truncated: np.ndarray) -> dict[str, float]:
    """TRL's `completions/*` metrics of n completions: `lengths` (n,) in tokens, `truncated` (n,) without end token."""
    ended = lengths[~truncated] if (~truncated).any() else np.zeros(1)
    return {
        "completions/mean_length": float(lengths.mean()),
        "completions/min_length": float(lengths.min()),
        "completions/max_length": float(lengths.max()),
        "completions/clipped_ratio": float(truncated.mean()),
        "completions/mean_terminated_length": float(ended.mean()),
        "completions/min_terminated_length": float(ended.min()),
        "completions/max_terminated_length": float(ended.max()),
    }


def reward_metrics(
    columns: FloatArray, summed: FloatArray, names: Sequence[str], dead_share: float
) -> dict[str, float]:
    """TRL's reward metrics over all rows of the step; `frac_reward_zero_std` is the share of groups without spread."""
    metrics = {"reward": _mean(summed), "reward_std": _std(summed), "frac_reward_zero_std": dead_share}
    for index, name in enumerate(names):
        metrics[f"rewards/{name}/mean"] = _mean(columns[:, index])
        metrics[f"rewards/{name}/std"] = _std(columns[:, index])
    return metrics


def collapse(
    metrics: dict[str, list[float]],
    before: Mapping[str, int],
    rows: Sequence[int],
    exact: Mapping[str, float],
) -> None:
    """Replace the entries that the waves of a step appended to `metrics` by one entry per name, in place.

    `before` says how many entries each name had, `rows` how many rows each wave had. Names in `exact` take that value;
    of the rest, minima and maxima stay so, anything else becomes the mean weighted by rows.
    """
    for name, values in metrics.items():
        start = before.get(name, 0)
        added = values[start:]
        if name == "num_tokens" or not added:
            continue
        if name in exact:
            value = exact[name]
        elif name.rsplit("/", 1)[-1].startswith("min"):
            value = float(np.nanmin(added))
        elif name.rsplit("/", 1)[-1].startswith("max"):
            value = float(np.nanmax(added))
        else:
            weights = np.asarray(rows if len(rows) == len(added) else [1] * len(added), dtype=np.float64)
            known = ~np.isnan(added)
            value = (
                float(np.average(np.asarray(added)[known], weights=weights[known])) if known.any() else float("nan")
            )
        values[start:] = [value]


def replace_last(entries: Any, values: Sequence[Any]) -> None:
    """Overwrite the last len(values) entries of a deque."""
    for _ in range(min(len(values), len(entries))):
        entries.pop()
    entries.extend(values)


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _std(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.std(ddof=1)) if len(known) > 1 else float("nan")
