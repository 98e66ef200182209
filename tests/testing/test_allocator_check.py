"""The allocator check tells a rule that breaks a promise which one it breaks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rollwise.allocators.base import room
from rollwise.allocators.uniform import Uniform, level_up
from rollwise.testing import check_allocator
from rollwise.types import IntArray, RollwiseError, StepView


class Rule(Uniform):
    """Uniform; each test breaks one thing."""

    name = "rule"


def test_a_good_rule_passes() -> None:
    check_allocator(Rule())


def test_a_rule_that_draws_from_the_generator_passes() -> None:
    class Random(Rule):
        def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
            need = np.maximum(view.n_min - view.paid, 0)
            if need.any():
                return Uniform().next_wave(replace(view, waves_left=1), rng)
            counts = np.zeros(view.size, dtype=np.int64)
            for _ in range(view.budget_left):
                counts[rng.choice(np.flatnonzero(counts < room(view)))] += 1
            return counts

    check_allocator(Random())


class Forgetful(Rule):
    """Counts its decisions, and lets nobody know."""

    def __init__(self) -> None:
        self.calls = 0

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        self.calls += 1
        wave = view.quantum * (1 + self.calls % 2)
        return level_up(view.paid, room(view), min(wave, view.budget_left))


class TooMuch(Rule):
    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        return super().next_wave(view, rng) + view.quantum


class Saver(Rule):
    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        counts = np.maximum(view.n_min - view.paid, 0)
        return counts - counts if counts.sum() % view.quantum else counts


class Scribbler(Rule):
    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        view.successes[:] = 0
        view.tokens_spent[:] += 1
        return super().next_wave(view, rng)


class Capless(Rule):
    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        counts = np.zeros(view.size, dtype=np.int64)
        counts[0] = view.budget_left
        return counts


class Unquantised(Rule):
    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        return level_up(view.paid, room(view), max(1, view.budget_left // 2))


class Floats(Rule):
    def next_wave(self, view: StepView, rng: np.random.Generator) -> Any:
        return super().next_wave(view, rng) * 1.0


class Refusing(Rule):
    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        raise RollwiseError("n_max: never")


class HalfStateful(Rule):
    def state_dict(self) -> dict[str, Any]:
        return {}


class Nameless(Rule):
    name = ""


class Endless(Rule):
    def metrics(self) -> dict[str, float]:
        return {"gain": float("nan")}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Forgetful(), "asked twice"),
        (TooMuch(), "with .* left"),
        (Saver(), "does not declare that it saves"),
        (Scribbler(), "changes the view"),
        (Capless(), "n_max|lack"),
        (Unquantised(), "no multiple of"),
        (Floats(), "not integers"),
        (Refusing(), "refuses every situation: n_max: never"),
        (HalfStateful(), "both or neither"),
        (Nameless(), "^name"),
        (Endless(), "'gain' is nan"),
        (object(), "^name"),
    ],
)
def test_a_broken_promise_is_named(rule: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_allocator(rule)


def test_state_that_state_dict_holds_is_no_secret() -> None:
    class Open(Forgetful):
        """Changes between steps only, by what state_dict holds."""

        def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
            return level_up(view.paid, room(view), min(view.quantum * (1 + self.calls), view.budget_left))

        def state_dict(self) -> dict[str, Any]:
            return {"calls": self.calls}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.calls = state["calls"]

    rule = Open()
    rule.calls = 2
    check_allocator(rule)
