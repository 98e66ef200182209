"""Waves and single rollouts by the price decomposition, for steps of any size and any prior per prompt.

The bridge from a `StepView` to `solver.plan` (waves), `solver.prices` (one rollout at a time) and `solver.ordered` (the
same, exactly, on the smallest steps).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rollwise.solver.last import HORIZON
from rollwise.solver.ordered import count_ordered, solve_ordered
from rollwise.solver.plan import plan_wave, size_wave
from rollwise.solver.prices import indices
from rollwise.solver.prompts import PromptStates, Terms
from rollwise.solver.queue import DIGITS
from rollwise.types import IntArray, RollwiseError, StepView
from rollwise.utilities import Utility

ORDERED_STATES = 20_000
"""States up to which one rollout is chosen by the exact optimum: the index can lose to uniform at tiny budgets."""

MOST_PER_PROMPT = 1024
"""Rollouts of one prompt a plan reaches to, whatever `n_max` allows: tables of h and of chances grow with its square."""


def check_reach(view: StepView, need: IntArray, space: IntArray) -> IntArray:
    """(B,) what each prompt may take beyond `need`, within `space` and `MOST_PER_PROMPT`.

    Raises:
        RollwiseError: the budget does not fit.
    """
    reach = np.maximum(MOST_PER_PROMPT - view.successes - view.failures - view.pending - need, 0)
    room = np.minimum(space - need, reach)
    if room.sum() < view.budget_left - need.sum():
        raise RollwiseError(
            f"budget: {view.budget} rollouts for {view.size} prompts; plans reach to {MOST_PER_PROMPT} a prompt, so give "
            f"at most {MOST_PER_PROMPT * view.size}, or allocator uniform"
        )
    return room


def prompt_states(
    view: StepView, need: IntArray, space: IntArray, *, costs: bool = False, table: IntArray | None = None
) -> PromptStates:
    """The view's prompts with `need` rollouts already started; `space` (B,) is what each may take in all.

    Raises:
        RollwiseError: the budget does not fit into `MOST_PER_PROMPT` rollouts a prompt.
    """
    room = check_reach(view, need, space)
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
        room,
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


def size_of_wave(utility: Terms, view: StepView, need: IntArray, space: IntArray) -> int:
    """Rollouts the next wave should have, `need` included, for a sum-type utility: what `plan_view` sums to."""
    started = int(need.sum())
    prompts = prompt_states(view, need, space)
    left = view.budget_left - started
    return started + size_wave(utility, prompts, left, view.waves_left, quantum=view.quantum, committed=started)


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
    # An index looks as far ahead as the room: beyond a few times the average share that only costs time.
    far = max(4 * HORIZON, 4 * -(-view.budget_left // view.size))
    index = np.round(indices(utility, replace(prompts, room=np.minimum(prompts.room, far))), DIGITS)
    none[np.lexsort((np.arange(view.size), view.paid, -index))[:wanted]] = 1
    return none
