"""Making the trainer's logs of a step made in several waves say what one block would have said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.integrations.trl.scores import Scores
from rollwise.types import FloatArray, Outcome, StepRecord


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


def rewrite(
    metrics: dict[str, list[float]],
    before: Mapping[str, int],
    rows: Sequence[int],
    scores: Scores,
    names: Sequence[str],
    record: StepRecord,
) -> None:
    """Make `metrics` say of a step made in several waves what one block would have said; see `collapse`."""
    exact = lengths_metrics(scores.lengths, scores.truncated)
    exact |= reward_metrics(scores.columns, scores.summed, names, record.metrics["dead_prompt_share"])
    collapse(metrics, before, rows, exact)


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


def add_columns(extra: Any, record: StepRecord) -> None:
    """Columns of the completions table: whose baseline a row shares, how large that group is, and the outcome."""
    extra["group_id"].extend(rollout.group_id for rollout in record.rollouts)
    extra["group_size"].extend(record.counts[record.slots].tolist())
    extra["outcome"].extend(OUTCOME[rollout.outcome] for rollout in record.rollouts)


OUTCOME = {Outcome.SUCCESS: 1, Outcome.FAILURE: 0, Outcome.UNKNOWN: None}


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
