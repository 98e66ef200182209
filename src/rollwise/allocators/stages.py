"""Waves of rules that draw in stages of their own: an opening for everybody, and what is asked for afterwards made to fit.

Such rules take as many waves as their stages need, whatever `waves_left` says. Rollouts still running count as drawn and
not as successes, so a rule never waits for one that is lost.
"""

from __future__ import annotations

import numpy as np

from rollwise.allocators.base import room
from rollwise.allocators.uniform import level_up
from rollwise.types import IntArray, RollwiseError, StepView


def first_round(view: StepView, published: int) -> int:
    """Rollouts per prompt of a first stage: as published, but at most half the average share N / B, at least 1.

    With the whole share spent before anything is known there is nothing left to allocate.
    """
    return max(1, min(published, view.budget // (2 * view.size)))


def opening(view: StepView, size: int) -> IntArray:
    """(B,) rollouts missing until every prompt has `size` of them, or its `n_min` where that is more."""
    target = np.minimum(np.maximum(view.n_min, size), view.n_max)
    return np.maximum(target - view.paid, 0)


def fit_wave(view: StepView, wanted: IntArray) -> IntArray:
    """(B,) `wanted` (B,) within caps and budget, in whole quanta.

    Short of budget the least-served prompts come first, ties to the lowest slot. The sum is rounded up: the extra rollouts
    go to prompts that are served anyway, then to the least-served ones.
    """
    space = room(view)
    counts = np.minimum(wanted, space)
    if counts.sum() > view.budget_left:
        counts = level_up(view.paid, counts, view.budget_left)
    served = np.where(counts > 0, space, 0)
    for open_space in (served, space):
        missing = -int(counts.sum()) % view.quantum
        counts = counts + level_up(view.paid + counts, np.maximum(open_space - counts, 0), missing)
    return counts


def spend_rest(view: StepView, counts: IntArray) -> IntArray:
    """(B,) `counts` (B,) and the rest of the budget, to the least-served prompts that have room."""
    rest = view.budget_left - int(counts.sum())
    return counts + level_up(view.paid + counts, room(view) - counts, rest)


def check_size(rule: str, setting: str, value: int | None, least: int = 1) -> None:
    """Raise `RollwiseError`, naming rule and setting, unless `value` is None or a whole number of at least `least`."""
    if value is not None and (not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least):
        raise RollwiseError(f"{rule}: {setting} {value!r} is out of range; give a whole number of {least} or more")
