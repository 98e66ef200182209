"""The allocator contract: a pure function from a view of the step to the rollouts of the next wave."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from rollwise.types import IntArray, StepView


@runtime_checkable
class Allocator(Protocol):
    """Decides how many rollouts each prompt of a step gets next.

    A rule that carries something between steps adds `state_dict()` and `load_state_dict(state)` (JSON-able data or
    arrays). Rules hold no per-step state: everything they may use is in the view, so that resuming and agreeing
    between processes come down to comparing `view.digest()`. A rule that looks at what not every trainer reports of a
    rollout says so in an attribute `needs`, a set of "answer" (for `votes`) and "gradient_norm".
    """

    name: str
    saves: bool
    """True for a rule that may leave budget unspent; all others spend exactly N."""

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now: non-negative, within `n_max`, in sum a multiple of `quantum` and at most
        `budget_left`. An all-zero answer ends the step (only a rule that saves may give it with budget left)."""
        ...

    def metrics(self) -> dict[str, float]:
        """Numbers worth logging about the rule itself; may be empty."""
        ...


def wave_size(view: StepView) -> int:
    """Rollouts of the next wave when the budget left is spread evenly over the waves left, in whole quanta."""
    if view.waves_left <= 1:
        return view.budget_left
    even = -(-view.budget_left // view.waves_left)
    return min(view.budget_left, -(-even // view.quantum) * view.quantum)


def room(view: StepView) -> IntArray:
    """(B,) rollouts each prompt may still take under its cap, none more than the budget left."""
    return np.clip(view.n_max - view.paid, 0, view.budget_left)
