"""Small situations of every kind a step can be in, drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rollwise.step import Step, Wave
from rollwise.types import FloatArray, Rollout

WRONG_ANSWERS = 3


@dataclass(frozen=True)
class Situation:
    """Settings of a step and what comes back from it.

    Coins (B,) are success chances; a verdict is `unknown` with that chance, a rollout `lost` or, each time it could come
    back, `late`.
    """

    prompt_ids: tuple[str, ...]
    budget: int
    coins: FloatArray
    unknown: float = 0.0
    lost: float = 0.0
    late: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        step = ", ".join(f"{key} {value}" for key, value in self.settings.items() if key != "prior")
        chances = f"unknown {self.unknown}, lost {self.lost}, late {self.late}"
        return f"{len(self.prompt_ids)} prompts, budget {self.budget}, {step}, coins {self.coins.round(2)}, {chances}"

    def open(self, allocator: Any, rng: np.random.Generator, **settings: Any) -> Step:
        """The step before its first wave."""
        return Step(self.prompt_ids, allocator, self.budget, rng=rng, **{**self.settings, **settings})


def draw_situation(rng: np.random.Generator, index: int) -> Situation:
    """One situation; the first few are plain, so that a rule that is wrong everywhere is told so in plain words."""
    plain = index < 4
    size = int(rng.integers(1, 8))
    quantum = 1 if plain else int(rng.choice([1, 1, 2, 3, 4]))
    copies = size if plain else size + int(rng.integers(0, 2))
    names = tuple(f"prompt-{slot % size}" for slot in range(copies))
    budget = quantum * -(-copies * int(rng.integers(2, 13)) // quantum)
    average = -(-budget // copies)
    n_min = 2 if plain else int(rng.integers(0, min(3, budget // copies) + 1))
    n_max = None if plain or rng.random() < 0.5 else int(average + rng.integers(0, average + 1))
    prior = rng.uniform(0.3, 6.0, (size, 2)) if not plain and rng.random() < 0.5 else np.ones((size, 2))
    return Situation(
        prompt_ids=names,
        budget=budget,
        coins=rng.choice([0.0, 1.0, *rng.random(4)], size),
        unknown=0.0 if plain else float(rng.choice([0.0, 0.2, 1.0], p=[0.5, 0.4, 0.1])),
        lost=0.0 if plain else float(rng.choice([0.0, 0.2], p=[0.7, 0.3])),
        late=0.0 if plain else float(rng.choice([0.0, 0.5, 1.0], p=[0.5, 0.3, 0.2])),
        settings={
            "waves": int(rng.integers(1, 6)),
            "quantum": quantum,
            "n_min": n_min,
            "n_max": n_max,
            "prior": prior,
            "objective": "none" if plain or rng.random() < 0.7 else "pass@2",
        },
    )


class Generation:
    """Makes the rollouts of a situation and hands them back when they are due, in no order."""

    def __init__(self, situation: Situation, rng: np.random.Generator) -> None:
        self.situation = situation
        self._rng = rng
        self._running: list[Rollout] = []

    def start(self, wave: Wave) -> None:
        """Start the rollouts of a wave; some of them never come back."""
        slots = {name: slot for slot, name in enumerate(dict.fromkeys(self.situation.prompt_ids))}
        for rollout in wave.rollouts:
            success = bool(self._rng.random() < self.situation.coins[slots[rollout.prompt_id]])
            known = self._rng.random() >= self.situation.unknown
            answer = "right" if success else f"wrong-{self._rng.integers(WRONG_ANSWERS)}"
            logprob, norm = -float(self._rng.exponential(5)), float(self._rng.exponential(1))
            back = rollout.result(
                success if known else None, answer=answer, tokens=7, logprob=logprob, gradient_norm=norm
            )
            if self._rng.random() >= self.situation.lost:
                self._running.append(back)

    def due(self, everything: bool = False) -> list[Rollout]:
        """What has come back by now."""
        self._rng.shuffle(self._running)
        back: list[Rollout] = []
        running: list[Rollout] = []
        for rollout in self._running:
            late = not everything and self._rng.random() < self.situation.late
            (running if late else back).append(rollout)
        self._running = running
        return back
