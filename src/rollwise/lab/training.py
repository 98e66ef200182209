"""What all arms of a comparison share, and what a run has done so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rollwise.lab.warmup import Warmup
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

UNTIL = ("rollouts", "steps", "tokens")


@dataclass(frozen=True)
class Training:
    """What all arms of a comparison share.

    N = prompts x rollouts a step. A run ends when it has spent `steps` x N rollouts, so a rule that saves gets more
    steps; with `until="steps"` after `steps` updates, whatever was spent; with `until="tokens"` when it has generated
    `steps` x `tokens`, so a rule that draws short completions gets more rollouts. It is evaluated at every
    `evaluate_every` x N rollouts, or x `tokens`, spent.
    """

    warmup: Warmup = field(default_factory=Warmup)
    steps: int = 300
    prompts: int = 32
    rollouts: int = 8
    until: str = "rollouts"
    evaluate_every: int = 25
    save_every: int = 100
    tokens: int | None = None

    def __post_init__(self) -> None:
        if self.until not in UNTIL:
            raise RollwiseError(f"until: no {self.until!r}; {nearest(str(self.until), UNTIL)}")
        if min(self.steps, self.prompts, self.rollouts, self.evaluate_every, self.save_every) < 1:
            raise RollwiseError("steps, prompts, rollouts, evaluate_every, save_every: give 1 or more each")
        if self.prompts > self.warmup.pool_size:
            raise RollwiseError(f"prompts: {self.prompts} a step from a pool of {self.warmup.pool_size}; give no more")
        if (self.tokens is None) == (self.until == "tokens"):
            raise RollwiseError(
                f"tokens: {self.tokens} a step until {self.until}; give both, such as 1600, or neither"
            )
        if self.tokens is not None and self.tokens < self.budget:
            raise RollwiseError(
                f"tokens: {self.tokens} a step for {self.budget} rollouts; give one each or more, such as "
                f"{8 * self.budget}"
            )

    @property
    def budget(self) -> int:
        """N, rollouts of a step."""
        return self.prompts * self.rollouts

    @property
    def axis(self) -> str:
        """What evaluations are spread over: `tokens` or `rollouts`."""
        return "tokens" if self.until == "tokens" else "rollouts"

    @property
    def grid(self) -> int:
        """Units of `axis` between evaluations."""
        return self.evaluate_every * (self.tokens or self.budget)

    @property
    def total(self) -> int:
        """What a run may spend of what it ends by: rollouts, steps or tokens."""
        return self.steps * {"rollouts": self.budget, "steps": 1, "tokens": self.tokens or 0}[self.until]


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

    def used(self, by: str) -> int:
        """What was spent of `rollouts`, `steps` or `tokens`."""
        return {"rollouts": self.spent, "steps": self.step, "tokens": self.tokens}[by]

    def rollouts_left(self, training: Training) -> int:
        """Rollouts the run may still make; by tokens as many as they make at the mean so far, at least one."""
        left = training.total - self.used(training.until)
        if training.until == "steps":
            return training.budget
        if training.until == "rollouts":
            return left
        return max(1, round(left * self.spent / self.tokens)) if self.tokens else training.budget
