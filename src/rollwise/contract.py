"""What a step can be asked for, and what an allocator may answer: the checks of `rollwise.step`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.allocators.base import Allocator
from rollwise.types import FloatArray, IntArray, Rollout, RollwiseError, StepView

MOST_ROLLOUTS = 10_000_000
"""Largest budget of one step: each rollout is an object in memory."""


def check_step(size: int, budget: int, waves: int, quantum: int, n_min: int, n_max: int) -> None:
    """Raise `RollwiseError`, naming the setting, where a step of B = `size` prompts cannot be run."""
    whole = {"budget": budget, "waves": waves, "quantum": quantum, "n_min": n_min, "n_max": n_max}
    for name, value in whole.items():
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            raise RollwiseError(f"{name}: {value!r} is not a whole number; give one, such as {nearest_whole(value)}")
    if size < 1:
        raise RollwiseError("prompt_ids: a step needs at least one prompt")
    if budget < 1 or quantum < 1 or budget % quantum:
        raise RollwiseError(f"budget: {budget} rollouts is not a positive multiple of {quantum} processes")
    if budget > MOST_ROLLOUTS:
        raise RollwiseError(f"budget: {budget} rollouts in one step; at most {MOST_ROLLOUTS}")
    if waves < 1:
        raise RollwiseError(f"waves: {waves}; give 1 or more")
    if n_min < 0 or n_min * size > budget:
        raise RollwiseError(f"n_min: {n_min} for {size} prompts and {budget} rollouts; at most {budget // size}")
    if n_max < max(n_min, 1) or n_max * size < budget:
        least = max(n_min, -(-budget // size))
        raise RollwiseError(f"n_max: {n_max} for {size} prompts and {budget} rollouts; at least {least}, or none")


def nearest_whole(value: Any) -> int:
    """The whole number of at least 1 next to `value`, 1 where there is none."""
    try:
        return max(1, round(float(value)))
    except (TypeError, ValueError, OverflowError):
        return 1


def check_costs(values: ArrayLike, size: int) -> FloatArray:
    """Tokens a rollout takes by outcome, (B, 2) for B = `size`, from one number, (B,) by prompt or (B, 2).

    Raises:
        RollwiseError: another shape, or a number that is not positive and finite.
    """
    try:
        given = np.asarray(values, dtype=np.float64)
        costs = np.broadcast_to(given[:, None] if given.ndim == 1 else given, (size, 2)).copy()
    except (TypeError, ValueError):
        raise RollwiseError(
            f"expected_cost: does not fit {size} prompts; give one number, or an array of shape ({size},) or ({size}, 2)"
        ) from None
    if not (np.isfinite(costs) & (costs > 0)).all():
        raise RollwiseError("expected_cost: not every number is positive; give tokens per rollout, such as 200")
    return costs


def check_counts(allocator: Allocator, view: StepView, counts: IntArray) -> IntArray:
    """The counts as int64 (B,), or `RollwiseError` naming the allocator where they break its contract."""
    counts = np.asarray(counts)
    fault = None
    if counts.shape != (view.size,) or not np.issubdtype(counts.dtype, np.integer):
        fault = f"gave {counts.dtype} of shape {counts.shape}, not integers of shape ({view.size},)"
    elif (counts < 0).any():
        fault = "gave negative counts"
    elif counts.sum() > view.budget_left:
        fault = f"asked for {counts.sum()} rollouts with {view.budget_left} left"
    elif counts.sum() % view.quantum:
        fault = f"asked for {counts.sum()} rollouts, no multiple of {view.quantum} processes"
    elif (view.paid + counts > view.n_max).any():
        fault = "went past n_max"
    elif not counts.any() and not allocator.saves:
        fault = f"stopped with {view.budget_left} rollouts unspent but does not declare that it saves"
    else:
        fault = unmet_minimum(view, counts)
    if fault:
        raise RollwiseError(f"allocator {allocator.name}: {fault}")
    return counts.astype(np.int64)


def unmet_minimum(view: StepView, counts: IntArray) -> str | None:
    """Why `n_min` cannot be met any more after `counts` (B,), or None.

    Budget left and n_min's debts are compared, so a rule may serve the debts late, but not spend what they need, and a
    rule that saves may not stop while a prompt is below its minimum.
    """
    owed = np.maximum(view.n_min - view.paid - counts, 0)
    left = view.budget_left - int(counts.sum())
    if owed.sum() <= (left if counts.any() else 0):
        return None
    done = f"spends {counts.sum()} rollouts and leaves {left}" if counts.any() else "stops"
    return (
        f"{done} where {np.count_nonzero(owed)} prompts lack {owed.sum()} rollouts to n_min "
        f"{view.n_min.max()}: give a rule that keeps n_min, or n_min 0"
    )


def rule_metrics(allocator: Allocator) -> dict[str, float]:
    """The numbers a rule reports of itself.

    Raises:
        RollwiseError: naming the rule, where one is no finite number: no log and no ledger line can hold it.
    """
    found = dict(allocator.metrics())
    for key, value in found.items():
        if not isinstance(value, (int, float, np.integer, np.floating)) or not np.isfinite(value):
            raise RollwiseError(f"allocator {allocator.name}: metric {key!r} is {value!r}; give a finite number")
    return {str(key): float(value) for key, value in found.items()}


def check_result(issued: Rollout, rollout: Rollout) -> None:
    """Raise `RollwiseError` unless what came back is the rollout that was `issued`, with a reward and tokens to count."""
    if (rollout.prompt_id, rollout.group_id) != (issued.prompt_id, issued.group_id):
        raise RollwiseError(
            f"observe: rollout {rollout.id} was issued for prompt {issued.prompt_id!r} and came back for "
            f"{rollout.prompt_id!r}; hand back rollout.result(...)"
        )
    reward, tokens = rollout.reward, rollout.tokens
    number = isinstance(reward, (int, float, np.integer, np.floating))
    if reward is not None and not (number and np.isfinite(reward)):
        raise RollwiseError(f"observe: rollout {rollout.id} has reward {reward!r}; None means unknown")
    if not isinstance(tokens, (int, np.integer)) or tokens < 0:
        raise RollwiseError(f"observe: rollout {rollout.id} has {tokens!r} tokens; give a whole number, 0 if unknown")
