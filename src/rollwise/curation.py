"""Closing a step: curators choose the rows, the estimator gives advantages, and the factors are multiplied, once.

    advantage of a row = estimator x objective x curator x weighting

`objective` is the prompt's weight frozen at the opening, `curator` the product of the curators' factors (0 for a row that
does not train), `weighting` rows against prompts among the rows that train.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rollwise.advantages import Advantage
from rollwise.curators.base import Curated, Curator
from rollwise.types import FloatArray, IntArray, Rollout, RollwiseError, StepRecord, StoredRow
from rollwise.weighting import row_weights


def weigh_rows(
    record: StepRecord,
    curators: Sequence[Curator],
    estimator: Advantage,
    weighting: str,
    rng: np.random.Generator,
) -> StepRecord:
    """The record with advantages, weights and factors, after each curator in turn.

    Args:
        record: a closed step whose `weights` (n,) are the objective's; its advantages are not looked at.
        weighting: `per_rollout` or `per_prompt`.

    Raises:
        RollwiseError: a curator that breaks its contract.
    """
    objective = record.weights
    plain = estimate(estimator, record.rollouts)
    factor, kept = np.ones(len(record.rollouts)), np.arange(len(record.rollouts))
    found = finish(record, plain, objective, factor, kept, (), weighting)
    stored: tuple[StoredRow, ...] = ()
    borrowed: dict[str, float] = {}
    for curator in curators:
        curated = curator.curate(found, rng)
        check_curated(curator, curated, found)
        chosen = np.zeros(len(factor))
        chosen[curated.rows] = curated.weights
        factor, kept = factor * chosen, curated.rows.astype(np.int64)
        stored = curated.stored
        if curated.regroup:
            joined = [row.rollout for row in stored if row.rollout.id in borrowed or row.advantage is None]
            values = estimate(estimator, [*(record.rollouts[place] for place in kept), *joined])
            plain = np.zeros(len(plain))
            plain[kept] = values[: len(kept)]
            borrowed = {row.id: float(value) for row, value in zip(joined, values[len(kept) :], strict=True)}
        stored = settle(stored, borrowed, objective, record)
        found = finish(record, plain, objective, factor, kept, stored, weighting)
        found.metrics.update(curator.metrics())
    return replace(found, metrics=found.metrics | curation_metrics(found)) if curators else found


def estimate(estimator: Advantage, rollouts: Sequence[Rollout]) -> FloatArray:
    """(n,) plain advantages of rollouts in order of issue."""
    rewards = np.array([np.nan if row.reward is None else row.reward for row in rollouts], dtype=np.float64)
    beliefs = np.array([row.belief for row in rollouts], dtype=np.float64).reshape(-1, 2)
    return estimator(rewards, [row.group_id for row in rollouts], beliefs, np.arange(len(rollouts)))


def settle(
    stored: tuple[StoredRow, ...], borrowed: dict[str, float], objective: FloatArray, record: StepRecord
) -> tuple[StoredRow, ...]:
    """Stored rows with an advantage each: frozen ones keep theirs, borrowed ones get that of the group they joined."""
    weight = {row.group_id: float(value) for row, value in zip(record.rollouts, objective, strict=True)}
    return tuple(
        replace(row, advantage=borrowed[row.rollout.id] * weight.get(row.rollout.group_id, 1.0))
        if row.rollout.id in borrowed
        else row
        for row in stored
    )


def finish(
    record: StepRecord,
    plain: FloatArray,
    objective: FloatArray,
    curator: FloatArray,
    kept: IntArray,
    stored: tuple[StoredRow, ...],
    weighting: str,
) -> StepRecord:
    """The record with the three factors of each row multiplied."""
    groups: dict[str, int] = {}
    index = np.array(
        [groups.setdefault(record.rollouts[place].group_id, len(groups)) for place in kept], dtype=np.int64
    )
    rows = np.ones(len(plain))
    rows[kept] = row_weights(index, weighting)
    factors = {"objective": objective, "curator": curator, "weighting": rows}
    weights = objective * curator * rows
    whole = len(kept) == len(plain)
    return replace(
        record,
        advantages=plain * weights,
        weights=weights,
        factors=factors,
        kept=None if whole else kept,
        stored=stored,
        metrics=dict(record.metrics),
    )


def check_curated(curator: Curator, curated: Curated, record: StepRecord) -> None:
    """Raise `RollwiseError`, naming the curator, where what it decided cannot be trained."""
    rows, weights = np.asarray(curated.rows), np.asarray(curated.weights, dtype=np.float64)
    fault = None
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer) or weights.shape != rows.shape:
        fault = f"gave {rows.dtype} rows of shape {rows.shape} with weights of shape {weights.shape}"
    elif len(rows) and ((np.diff(rows) <= 0).any() or not np.isin(rows, record.trained).all()):
        fault = "gave rows that are not ascending places of rollouts that still train"
    elif not (np.isfinite(weights).all() and (weights >= 0).all()):
        fault = "gave a weight that is negative or not finite"
    elif any(row.advantage is None for row in curated.stored) and not curated.regroup:
        fault = "gave a stored rollout without advantage and no regroup"
    if fault:
        raise RollwiseError(f"curator {curator.name}: {fault}")


def curation_metrics(record: StepRecord) -> dict[str, float]:
    """Share of the step's rollouts that train, rollouts of earlier steps, and whether the step is idle."""
    fresh, stored = len(record.trained), len(record.stored)
    return {
        "trained_share": fresh / max(1, len(record.rollouts)),
        "stored_rows": float(stored),
        "idle": float(record.idle),
    }
