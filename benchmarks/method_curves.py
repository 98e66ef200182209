"""Effective weight w(p) and rollouts per prompt of the published allocation rules, for their pages in docs/methods.

    python benchmarks/method_curves.py [--steps 60] [--only hora,aero]

A step of 64 prompts, rates drawn evenly from the columns, 16 rollouts each on average, n_min 2, advantages r - group
mean. Uniform allocation weighs every prompt with 15, so a column tells what a rule multiplies a prompt's gradient by. Rules
that decide by carried beliefs are shown knowing every rate.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from rollwise.allocators import get_allocator
from rollwise.allocators.base import Allocator
from rollwise.effective_weight import contributions, measured_weight
from rollwise.pool import Pool
from rollwise.step import Step
from rollwise.types import IntArray, Outcome, StepView

RATES = np.array([0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
PROMPTS, PER_PROMPT = 64, 16
RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "uniform": ("uniform", {}),
    "hora": ("hora", {}),
    "hora mass_aware": ("hora", {"mass_aware": True}),
    "aero": ("aero", {}),
    "ar3po": ("ar3po", {}),
    "reinforce_ada balanced": ("reinforce_ada", {}),
    "reinforce_ada positive": ("reinforce_ada", {"stop": "positive"}),
    "dars et": ("dars", {}),
    "dars hw": ("dars", {"form": "hw"}),
    "gvm_equal": ("gvm_equal", {}),
}
INFORMED: dict[str, tuple[str, dict[str, Any]]] = {
    "vip rloo": ("vip", {}),
    "vip dr_grpo": ("vip", {"form": "dr_grpo"}),
    "knapsack": ("knapsack", {}),
}


class Counting:
    """A rule that remembers what every rate was given."""

    saves = True

    def __init__(self, inner: Allocator) -> None:
        self.inner, self.name = inner, inner.name
        self.spent: list[int] = []

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        counts = np.asarray(self.inner.next_wave(view, rng))
        self.spent.append(int(counts.sum()))
        return counts

    def metrics(self) -> dict[str, float]:
        return {}


def main() -> None:
    """Print one line per rule."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    only = [name for name in arguments.only.split(",") if name]
    print(f"{'p':24}" + "".join(f"{rate:8.2f}" for rate in RATES) + "   spent")
    pool = Pool.histogram(RATES, np.ones(len(RATES)))
    for label, (name, settings) in RULES.items():
        if only and not any(label.startswith(word) for word in only):
            continue
        rule = Counting(get_allocator(name, **settings))
        curve = measured_weight(
            rule, pool, prompts=PROMPTS, per_prompt=PER_PROMPT, draws=arguments.steps, fewest=1, seed=1
        )
        show(label, curve.weight, sum(rule.spent) / (arguments.steps * PROMPTS))
        show("  95 % interval, half", (curve.high - curve.low) / 2)
    for label, (name, settings) in INFORMED.items():
        counts = informed_counts(get_allocator(name, **settings))
        show(label, counts - 1, float(counts.mean()))
    weight, spent, right = vote_curve(arguments.steps)
    show("optpo", weight, float(spent.mean()))
    show("  rollouts", spent)
    show("  right labels", right)


def informed_counts(rule: Allocator) -> np.ndarray:
    """Rollouts per prompt at each rate where beliefs are as good as knowledge."""
    slots = np.arange(PROMPTS) % len(RATES)
    prior = np.stack([1 + 1e6 * RATES[slots], 1 + 1e6 * (1 - RATES[slots])], axis=1)
    names = [str(slot) for slot in range(PROMPTS)]
    step = Step(names, rule, PROMPTS * PER_PROMPT, rng=np.random.default_rng(0), prior=prior)
    counts = step.next_wave().counts  # type: ignore[union-attr]
    return np.bincount(slots, weights=counts) / np.bincount(slots)


def vote_curve(steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """w(p) towards the true answer, rollouts and right labels of OptPO: one right answer, wrong ones spread over three."""
    rng, rule = np.random.default_rng(2), get_allocator("optpo")
    found = np.zeros((3, len(RATES)))
    for _ in range(steps):
        slots = np.arange(PROMPTS) % len(RATES)
        names = [str(slot) for slot in range(PROMPTS)]
        step = Step(names, rule, 64 * PROMPTS, rng=rng, n_min=0, labels="majority", advantage="dr_grpo")
        while wave := step.next_wave():
            for rollout in wave.rollouts:
                right = rng.random() < RATES[slots[int(rollout.prompt_id)]]
                step.observe(rollout.result(right, answer="right" if right else f"wrong-{rng.integers(3)}"))
        record = step.close()
        truth = [row.answer == "right" for row in record.rollouts]
        rows = [row.result(won) for row, won in zip(record.rollouts, truth, strict=True)]
        gains = contributions(replace(record, rollouts=tuple(rows)), RATES[slots], record.advantages)
        labels = np.zeros(PROMPTS)
        for row, slot in zip(record.rollouts, record.slots, strict=True):
            labels[slot] = max(labels[slot], row.answer == "right" and row.outcome is Outcome.SUCCESS)
        for place, values in enumerate((gains, record.counts, labels)):
            found[place] += np.bincount(slots, weights=values) / np.bincount(slots)
    weight, spent, right = found / steps
    return weight, spent, right


def show(label: str, values: np.ndarray, spent: float | None = None) -> None:
    """One line of the table."""
    tail = "" if spent is None else f"{spent:8.2f}"
    print(f"{label:24}" + "".join(f"{value:8.2f}" for value in values) + tail, flush=True)


if __name__ == "__main__":
    main()
