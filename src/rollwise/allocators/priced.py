"""Waves and single rollouts by the price decomposition, for steps of any size and any prior per prompt.

The bridge from a `StepView` to `solver.plan` (waves), `solver.prices` (one rollout at a time) and `solver.ordered` (the
same, exactly, on the smallest steps).
"""

from __future__ import annotations

import numpy as np

from rollwise.solver.ordered import count_ordered, solve_ordered
from rollwise.solver.plan import plan_wave
from rollwise.solver.prices import indices
from rollwise.solver.prompts import PromptStates, Terms
from rollwise.solver.queue import DIGITS
from rollwise.types import IntArray, RollwiseError, StepView
from rollwise.utilities import Utility

ORDERED_STATES = 20_000
"""States up to which one rollout is chosen by the exact optimum: the index can lose to uniform at tiny budgets."""


def prompt_states(
    view: StepView, need: IntArray, space: IntArray, *, costs: bool = False, table: IntArray | None = None
) -> PromptStates:
    """The view's prompts with `need` rollouts already started; `space` (B,) is what each may take in all."""
    cost = np.ones((view.size, 2))
    if costs:
        by_outcome = view.outcome_cost
        cost = np.repeat(view.expected_cost[:, None], 2, axis=1) if by_outcome is None else by_outcome
    return PromptStates(
        view.prior_a.astype(np.float64),
        view.prior_b.astype(np.float64),
        view.successes,
        view.failures,
        view.pending + need,
        space - need,
        np.ascontiguousarray(cost[:, 0], dtype=np.float64),
        np.ascontiguousarray(cost[:, 1], dtype=np.float64),
        np.zeros(view.size, dtype=np.int64) if table is None else table,
    )


def plan_view(
    utility: Terms,
    view: StepView,
    need: IntArray,
    space: IntArray,
    token_budget: float | None = None,
    *,
    table: IntArray | None = None,
) -> IntArray:
    """(B,) rollouts of the next wave, `need` included, for a sum-type utility; `table` (B,) as in `PromptStates`."""
    prompts = prompt_states(view, need, space, costs=token_budget is not None, table=table)
    tokens = None
    if token_budget is not None:
        running = float(((view.pending + need) * view.expected_cost).sum())
        tokens = max(0.0, token_budget - float(view.tokens_spent.sum()) - running)
    started = int(need.sum())
    return need + plan_wave(
        utility,
        prompts,
        view.budget_left - started,
        view.waves_left,
        quantum=view.quantum,
        committed=started,
        paid=view.paid + need,
        tokens=tokens,
    )


def serve_next(utility: Utility, view: StepView, space: IntArray) -> IntArray:
    """(B,) one rollout for each of the `quantum` prompts with the largest index; a single one exactly on tiny steps.

    Raises:
        RollwiseError: fewer prompts than processes have room.
    """
    none = np.zeros(view.size, dtype=np.int64)
    wanted, prompts = min(view.quantum, view.budget_left), prompt_states(view, none, space)
    if wanted > (space > 0).sum():
        raise RollwiseError(
            f"sequential hands out one rollout per prompt and decision, {(space > 0).sum()} at most, below world size "
            f"{view.quantum}: use sequential=False"
        )
    tiny = count_ordered(view.size, view.budget_left) <= ORDERED_STATES
    if wanted == 1 and tiny and not view.pending.any():
        none[solve_ordered(utility, prompts, view.budget_left).action(view.paid)] = 1
        return none
    index = np.round(indices(utility, prompts), DIGITS)
    none[np.lexsort((np.arange(view.size), view.paid, -index))[:wanted]] = 1
    return none
