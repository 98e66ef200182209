"""Does a rule keep the allocator contract?"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import numpy as np

from rollwise.testing.situations import Generation, Situation, draw_situation
from rollwise.types import IntArray, RollwiseError, StepView


def check_allocator(allocator: Any, *, seed: int = 0, situations: int = 80) -> None:
    """Play `allocator` through small steps of every kind and check what `rollwise.allocators.Allocator` promises.

    * a `name`, whether it `saves`, `metrics()` of finite numbers;
    * counts that are whole, not negative, within `n_max` and the budget, whole quanta in sum, `n_min` kept;
    * the whole budget spent, unless it says that it saves;
    * purity: one view and one state of the generator, one answer; views are left alone; nothing is remembered that
      `state_dict` does not hold;
    * all of this with outcomes late, lost, unknown and in any order, several waves, priors per prompt and repeated prompts.

    A rule may refuse a situation by raising `RollwiseError`, but not all of them.

    Raises:
        AssertionError: naming the promise and the situation.
    """
    check_face(allocator)
    check_metrics(allocator)
    rng = np.random.default_rng(seed)
    refusal: RollwiseError | None = None
    played = 0
    for index in range(situations):
        situation = draw_situation(rng, index)
        try:
            play(allocator, situation, rng)
            played += 1
        except Refused as refused:
            refusal = refused.error
    assert played, f"{allocator.name} refuses every situation: {refusal}"
    check_metrics(allocator)


def check_face(allocator: Any) -> None:
    """Check the attributes and methods a rule must have."""
    assert isinstance(getattr(allocator, "name", None), str) and allocator.name, "name: give the rule a name, a string"
    assert isinstance(getattr(allocator, "saves", None), bool), (
        "saves: say True or False, whether the rule may leave budget unspent"
    )
    for method in ("next_wave", "metrics"):
        assert callable(getattr(allocator, method, None)), f"{method}: the rule has no such method"
    stateful = [hasattr(allocator, method) for method in ("state_dict", "load_state_dict")]
    assert len(set(stateful)) == 1, "state_dict and load_state_dict: a rule has both or neither"


def check_metrics(allocator: Any) -> None:
    """Check that what the rule reports of itself can be logged."""
    for key, value in allocator.metrics().items():
        number = isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)
        assert isinstance(key, str) and number, f"metrics: {key!r} is {value!r}, not a finite number"


def play(allocator: Any, situation: Situation, rng: np.random.Generator) -> None:
    """One step to its end; raises AssertionError for a broken promise, `Refused` where the rule refuses."""
    watched = Watched(allocator)
    generation = Generation(situation, rng)
    step = situation.open(watched, np.random.default_rng(int(rng.integers(1 << 31))))
    try:
        while wave := step.next_wave():
            generation.start(wave)
            step.observe(*generation.due())
        step.observe(*generation.due(everything=True))
        while wave := step.next_wave():
            generation.start(wave)
            step.observe(*generation.due(everything=True))
        record = step.close()
    except RollwiseError as error:
        raise AssertionError(f"{error} [{situation}]") from None
    spent = int(record.counts.sum())
    assert spent == situation.budget or allocator.saves, (
        f"allocator {allocator.name}: spent {spent} of {situation.budget} rollouts but does not declare that it saves "
        f"[{situation}]"
    )
    assert spent <= situation.budget, f"allocator {allocator.name}: spent {spent} rollouts [{situation}]"


class Refused(Exception):
    """The rule refused a situation in words."""

    def __init__(self, error: RollwiseError) -> None:
        super().__init__(str(error))
        self.error = error


class Watched:
    """A rule whose every decision is taken twice, and once more by a copy that saw none of the earlier steps."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._fresh = deepcopy(inner)
        self.name = inner.name
        self.saves = inner.saves

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        before, start = view.digest(), deepcopy(rng.bit_generator.state)
        counts = np.asarray(self._decide(self._inner, view, rng))
        end = deepcopy(rng.bit_generator.state)
        assert view.digest() == before, f"allocator {self.name}: changes the view it is shown; work on copies"
        if hasattr(self._inner, "state_dict"):
            self._fresh.load_state_dict(deepcopy(self._inner.state_dict()))
        for rule, words in (
            (self._inner, "asked twice"),
            (self._fresh, "asked without having seen earlier decisions"),
        ):
            rng.bit_generator.state = start
            again = np.asarray(self._decide(rule, view, rng))
            assert np.array_equal(counts, again), (
                f"allocator {self.name}: {words}, it gives {again} instead of {counts}; a decision may depend on the view, "
                "the generator and state_dict only"
            )
        rng.bit_generator.state = end
        return counts

    def metrics(self) -> dict[str, float]:
        return self._inner.metrics()

    def _decide(self, rule: Any, view: StepView, rng: np.random.Generator) -> IntArray:
        try:
            return rule.next_wave(view, rng)
        except RollwiseError as error:
            raise Refused(error) from error
