"""What all arms of a comparison share, and what a run has done so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rollwise.lab.warmup import Warmup
from rollwise.types import RollwiseError


@dataclass(frozen=True)
class Training:
    """What all arms of a comparison share.

    N = prompts x rollouts a step. A run ends when it has spent `steps` x N rollouts, so a rule that saves gets more
    steps; with `until="steps"` after `steps` updates, whatever was spent. It is evaluated at every
    `evaluate_every` x N rollouts spent.
    """

    warmup: Warmup = field(default_factory=Warmup)
    steps: int = 300
    prompts: int = 32
    rollouts: int = 8
    until: str = "rollouts"
    evaluate_every: int = 25
    save_every: int = 100

    def __post_init__(self) -> None:
        if self.until not in ("rollouts", "steps"):
            raise RollwiseError(f"until: no {self.until!r}; give rollouts or steps")
        if min(self.steps, self.prompts, self.rollouts, self.evaluate_every, self.save_every) < 1:
            raise RollwiseError("steps, prompts, rollouts, evaluate_every, save_every: give 1 or more each")
        if self.prompts > self.warmup.pool_size:
            raise RollwiseError(f"prompts: {self.prompts} a step from a pool of {self.warmup.pool_size}; give no more")

    @property
    def budget(self) -> int:
        """N, rollouts of a step."""
        return self.prompts * self.rollouts


@dataclass
class Progress:
    """What a run has done so far: all of it is saved and comes back on resuming."""

    step: int = 0
    spent: int = 0
    tokens: int = 0
    seconds: float = 0.0
    generating: float = 0.0
    curve: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=dict)
