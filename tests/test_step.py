"""The step: an exact budget, outcomes in any order, and the same decisions again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.allocators import Uniform, get_allocator
from rollwise.ledger import Ledger
from rollwise.objectives import objective_weights
from rollwise.step import Step
from rollwise.types import IntArray, Outcome, Rollout, RollwiseError, StepView


class Scripted:
    """A rule that answers with given counts."""

    def __init__(self, *answers: Any, saves: bool = False) -> None:
        self.name, self.saves = "scripted", saves
        self._answers = list(answers)

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        return np.asarray(self._answers.pop(0))

    def metrics(self) -> dict[str, float]:
        return {}


def new_step(allocator: Any = None, prompts: int = 3, budget: int = 12, **settings: Any) -> Step:
    names = [f"p{index}" for index in range(prompts)]
    return Step(names, allocator or Uniform(), budget, rng=np.random.default_rng(0), **settings)


def play(step: Step, success: Any) -> Any:
    while wave := step.next_wave():
        step.observe(*(rollout.result(success(rollout)) for rollout in wave.rollouts))
    return step.close()


@given(
    prompts=st.integers(1, 6),
    per_prompt=st.integers(2, 5),
    waves=st.integers(1, 6),
    quantum=st.integers(1, 3),
    allocator=st.sampled_from(["uniform", "adaroll"]),
    seed=st.integers(0, 99),
)
def test_the_budget_is_spent_exactly_in_whole_quanta(
    prompts: int, per_prompt: int, waves: int, quantum: int, allocator: str, seed: int
) -> None:
    budget = prompts * per_prompt * quantum
    rng = np.random.default_rng(seed)
    step = new_step(get_allocator(allocator), prompts, budget, waves=waves, quantum=quantum)
    sizes = []
    while wave := step.next_wave():
        sizes.append(int(wave.counts.sum()))
        step.observe(*(rollout.result([0, 1, None][rng.integers(3)]) for rollout in wave.rollouts))
    record = step.close()
    assert sum(sizes) == record.counts.sum() == len(record.rollouts) == budget
    assert all(size % quantum == 0 for size in sizes)
    assert record.counts.min() >= 2


@given(order=st.permutations(range(12)), repeats=st.integers(0, 3))
def test_order_and_repetition_of_observations_do_not_matter(order: list[int], repeats: int) -> None:
    def observe(order: list[int]) -> Any:
        step = new_step(waves=1)
        wave = step.next_wave()
        assert wave is not None
        back = [rollout.result(index % 3 == 0) for index, rollout in enumerate(wave.rollouts)]
        for index in order + order[:repeats]:
            step.observe(back[index])
        return step.close()

    plain, shuffled = observe(list(range(12))), observe(list(order))
    assert plain.advantages.tolist() == shuffled.advantages.tolist()
    assert plain.successes.tolist() == shuffled.successes.tolist()
    assert [rollout.id for rollout in plain.rollouts] == [rollout.id for rollout in shuffled.rollouts]


def test_the_first_result_of_a_rollout_counts() -> None:
    step = new_step(waves=1)
    wave = step.next_wave()
    assert wave is not None
    step.observe(wave.rollouts[0].result(1))
    step.observe(wave.rollouts[0].result(0))
    assert step.view.successes.tolist() == [1, 0, 0]


def test_what_is_running_is_pending_and_paid() -> None:
    step = new_step(waves=2)
    wave = step.next_wave()
    assert wave is not None
    step.observe(*(rollout.result(1) for rollout in wave.rollouts[:2]))
    view = step.view
    assert view.pending.tolist() == [0, 2, 2]
    assert view.paid.tolist() == [2, 2, 2]
    assert (view.budget, view.budget_left, view.waves_left) == (12, 6, 1)


def test_unknown_leaves_the_belief_alone_but_is_paid() -> None:
    step = new_step(waves=2)
    wave = step.next_wave()
    assert wave is not None
    step.observe(*(rollout.result(None) for rollout in wave.rollouts))
    later = step.next_wave()
    assert later is not None
    assert {rollout.belief for rollout in later.rollouts} == {(1.0, 1.0)}
    assert step.view.unknown.tolist() == [2, 2, 2]


def test_rollouts_are_issued_under_the_belief_held_then() -> None:
    step = new_step(waves=2, prior=(2.0, 3.0))
    wave = step.next_wave()
    assert wave is not None
    assert {rollout.belief for rollout in wave.rollouts} == {(2.0, 3.0)}
    step.observe(*(rollout.result(rollout.prompt_id == "p0") for rollout in wave.rollouts))
    later = step.next_wave()
    assert later is not None
    assert {rollout.prompt_id: rollout.belief for rollout in later.rollouts} == {
        "p0": (4.0, 3.0),
        "p1": (2.0, 5.0),
        "p2": (2.0, 5.0),
    }


def test_what_never_comes_back_is_closed_as_unknown() -> None:
    step = new_step(waves=1)
    wave = step.next_wave()
    assert wave is not None
    step.observe(*(rollout.result(1) for rollout in wave.rollouts[:-1]))
    record = step.close()
    assert record.unknown.tolist() == [0, 0, 1]
    assert record.rollouts[-1].outcome is Outcome.UNKNOWN
    assert record.advantages[-1] == 0.0
    assert record.metrics["lost"] == 1.0


def test_a_late_rollout_changes_nothing() -> None:
    step = new_step(waves=1)
    wave = step.next_wave()
    assert wave is not None
    record = step.close()
    step.observe(wave.rollouts[0].result(1))
    assert step.close().successes.tolist() == record.successes.tolist() == [0, 0, 0]
    assert step.next_wave() is None


def test_repeated_prompts_share_a_slot_and_a_group() -> None:
    step = Step(["a", "b", "a"], Uniform(), 12, rng=np.random.default_rng(0), n_max=6, waves=1)
    record = play(step, lambda rollout: 1)
    assert record.prompt_ids == ("a", "b")
    assert record.counts.tolist() == [6, 6]
    assert len({rollout.group_id for rollout in record.rollouts}) == 2


def test_a_group_of_one_has_no_advantage() -> None:
    step = new_step(Scripted([1, 11, 0]), n_min=0)
    record = play(step, lambda rollout: rollout.id.endswith("1") or rollout.prompt_id == "p0")
    assert record.advantages[0] == 0.0
    assert np.abs(record.advantages[1:]).min() > 0.0


def test_a_rule_that_saves_may_stop_early() -> None:
    record = play(new_step(Scripted([2, 2, 2], [0, 0, 0], saves=True)), lambda rollout: 1)
    assert record.counts.sum() == 6
    assert record.budget == 12


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([4, 4], "shape"),
        ([4.0, 4.0, 4.0], "not integers"),
        ([-1, 4, 4], "negative"),
        ([9, 9, 9], "asked for 27 rollouts with 12 left"),
        ([1, 1, 1], "no multiple of 2 processes"),
        ([0, 0, 0], "does not declare that it saves"),
        ([10, 0, 0], "went past n_max"),
    ],
)
def test_a_rule_that_breaks_its_contract_is_named_and_nothing_is_issued(answer: Any, message: str) -> None:
    step = new_step(Scripted(answer), quantum=2, n_max=8)
    with pytest.raises(RollwiseError, match=f"^allocator scripted: .*{message}"):
        step.next_wave()
    assert step.view.budget_left == 12


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 0}, "^budget: 0"),
        ({"budget": 13, "quantum": 2}, "^budget: 13 .* multiple of 2"),
        ({"waves": 0}, "^waves: 0"),
        ({"n_min": 5}, "^n_min: 5 .* at most 4"),
        ({"n_min": -1}, "^n_min: -1"),
        ({"n_max": 3}, "^n_max: 3 .* at least 4"),
        ({"prompts": 0}, "^prompt_ids: "),
        ({"weighting": "per_promt"}, "did you mean 'per_prompt'"),
        ({"advantage": "grpoo"}, "did you mean 'grpo'"),
    ],
)
def test_settings_that_cannot_be_met_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RollwiseError, match=message):
        new_step(**settings)


def test_a_foreign_rollout_and_an_infinite_reward_are_refused() -> None:
    step = new_step()
    wave = step.next_wave()
    assert wave is not None
    with pytest.raises(RollwiseError, match="issued no rollout 'x'"):
        step.observe(Rollout("x", "p0", "p0", 0))
    with pytest.raises(RollwiseError, match="has reward inf"):
        step.observe(wave.rollouts[0].result(1), wave.rollouts[1].result(1, reward=float("inf")))
    assert step.view.pending.sum() == wave.counts.sum(), "nothing of a refused call is taken in"


@pytest.mark.parametrize("allocator", ["uniform", "adaroll"])
@pytest.mark.parametrize("stop", [1, 5, 9, 14, 23])
def test_a_killed_step_resumes_from_its_ledger_and_pays_nothing_twice(
    tmp_path: Path, allocator: str, stop: int
) -> None:
    def success(rollout: Rollout) -> bool:
        return hash((int(rollout.id.split("-")[1]), 7)) % 3 == 0

    def step(ledger: Ledger) -> Step:
        return new_step(get_allocator(allocator), budget=24, ledger=ledger)

    whole = play(step(Ledger(tmp_path / "whole.jsonl")), success)
    first = step(Ledger(tmp_path / "cut.jsonl"))
    generated = 0
    while generated < stop and (wave := first.next_wave()):
        for rollout in wave.rollouts[: stop - generated]:
            first.observe(rollout.result(success(rollout)))
            generated += 1
    reopened = Ledger(tmp_path / "cut.jsonl")
    second = step(reopened)
    while wave := second.next_wave():
        for rollout in wave.rollouts:
            second.observe(rollout.result(success(rollout)))
            generated += 1
    record = second.close()
    assert generated == 24
    assert reopened.paid == 24
    assert record.rollouts == whole.rollouts
    assert record.advantages.tolist() == whole.advantages.tolist()


@pytest.mark.parametrize("objective", ["log", "pass@4"])
def test_an_objective_weighs_prompts_by_the_beliefs_at_the_opening(objective: str) -> None:
    prior = np.array([[1.0, 9.0], [5.0, 5.0], [9.0, 1.0]])
    plain = play(new_step(prior=prior), lambda rollout: int(rollout.id[2:]) % 2)
    weighed = play(new_step(prior=prior, objective=objective), lambda rollout: int(rollout.id[2:]) % 2)
    weights = objective_weights(objective, prior)
    assert weights[0] > weights[1] > weights[2]
    assert weighed.factors["objective"] == pytest.approx(weights[weighed.slots])
    assert weighed.advantages == pytest.approx(plain.advantages * weights[weighed.slots])
    assert weighed.counts.tolist() == plain.counts.tolist()


def test_weights_are_the_product_of_their_factors() -> None:
    settings: dict[str, Any] = {"n_min": 0, "prior": np.array([[1, 9.0], [5, 5], [9, 1]])}
    record = play(
        new_step(Scripted([2, 7, 3]), objective="log", weighting="per_prompt", **settings), lambda rollout: 1
    )
    assert set(record.factors) == {"objective", "weighting"}
    assert record.weights == pytest.approx(record.factors["objective"] * record.factors["weighting"])
