"""The step: an exact budget, outcomes in any order, and the same decisions again."""

from __future__ import annotations

from dataclasses import replace
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
    assert set(record.factors) == {"objective", "curator", "weighting"}
    assert record.weights == pytest.approx(record.factors["objective"] * record.factors["weighting"])


def resume(tmp_path: Path, **changes: Any) -> None:
    """Kill a step of `new_step` after its first wave, then resume it with `changes`."""
    first = new_step(ledger=Ledger(tmp_path / "l.jsonl"))
    wave = first.next_wave()
    assert wave is not None
    first.observe(*(rollout.result(1) for rollout in wave.rollouts))
    settings = {"prompt_ids": ["p0", "p1", "p2"], "allocator": Uniform(), "budget": 12} | changes
    rng, ledger = np.random.default_rng(0), Ledger(tmp_path / "l.jsonl")
    try:
        Step(**settings, rng=rng, ledger=ledger).next_wave()
    finally:
        assert ledger.paid == wave.counts.sum(), "nothing is paid for on a ledger of another run"


@pytest.mark.parametrize("value", [np.nan, np.inf, "much", None])
def test_a_metric_that_is_no_number_stops_before_anything_is_paid(value: Any) -> None:
    class Boastful(Uniform):
        def metrics(self) -> dict[str, float]:
            return {"score": value}

    with pytest.raises(RollwiseError, match="^allocator uniform: metric 'score' is "):
        Step(["a", "b"], Boastful(), 4, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_ids": ["p1", "p0", "p2"]},
        {"prompt_ids": ["a", "b", "c"]},
        {"prompt_ids": ["p0", "p1"]},
        {"budget": 24},
        {"waves": 2},
        {"prior": (2.0, 1.0)},
        {"n_max": 6},
        {"objective": "log"},
        {"allocator": Scripted([3, 0, 0])},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_ledger_of_another_run_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(RollwiseError, match=r"^ledger: .*l\.jsonl holds another wave 0 of step 0 .*new ledger$"):
        resume(tmp_path, **changes)


def test_the_ledger_of_the_same_run_is_taken_up(tmp_path: Path) -> None:
    resume(tmp_path)


def test_a_step_before_the_ledgers_end_is_not_paid_again_unsaid(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.jsonl")
    play(new_step(index=3, ledger=ledger), lambda rollout: 1)
    with pytest.raises(RollwiseError, match=r"^ledger: .* is at step 3 already, past step 2; .*rewind\(2\)"):
        new_step(index=2, ledger=ledger).next_wave()
    assert ledger.rewind(2) == 12
    play(new_step(index=2, ledger=ledger), lambda rollout: 1)


@given(
    allocator=st.sampled_from(["uniform", "adaroll"]),
    delay=st.integers(0, 9),
    kill=st.integers(0, 40),
    seed=st.integers(0, 9),
)
def test_a_step_killed_with_outcomes_late_plays_the_same_decisions_again(
    tmp_path_factory: pytest.TempPathFactory, allocator: str, delay: int, kill: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("late")

    def answer(rollout: Rollout) -> Rollout:
        return rollout.result((int(rollout.id[2:]) * 7 + seed) % 3 == 0)

    def run(name: str, actions: int, running: list[Rollout]) -> tuple[Step, Ledger, int]:
        """Up to `delay` rollouts stay out while the next wave is decided; stops after so many actions."""
        ledger = Ledger(folder / name)
        step = new_step(get_allocator(allocator), 4, 24, ledger=ledger, waves=5)
        made = 0
        while actions > 0 and (wave := step.next_wave()):
            running += wave.rollouts
            actions -= 1
            while actions > 0 and len(running) > delay:
                step.observe(answer(running.pop(0)))
                made, actions = made + 1, actions - 1
        return step, ledger, made

    _, ledger, before = run("cut", kill, [])
    waves = [line for line in (folder / "cut").read_text().splitlines() if '"type": "wave"' in line]
    ledger.close()
    running: list[Rollout] = []
    step, ledger, after = run("cut", 1000, running)
    step.observe(*map(answer, running))
    record = step.close()
    lines = (folder / "cut").read_text().splitlines()
    assert [line for line in lines if '"type": "wave"' in line][: len(waves)] == waves
    assert ledger.paid == before + after + len(running) == record.counts.sum() == 24
    assert record.unknown.sum() == 0
    assert all(rollout.outcome is answer(rollout).outcome for rollout in record.rollouts)


def test_a_resumed_step_may_close_before_its_recorded_waves_are_played(tmp_path: Path) -> None:
    def half(ledger: Ledger) -> Step:
        step = new_step(ledger=ledger)
        wave = step.next_wave()
        assert wave is not None
        step.observe(*(rollout.result(1) for rollout in wave.rollouts))
        return step

    half(Ledger(tmp_path / "l.jsonl")).next_wave()
    record = half(Ledger(tmp_path / "l.jsonl")).close()
    assert record.successes.sum() == record.counts.sum() == 3


@pytest.mark.parametrize(
    ("answers", "saves"),
    [([[10, 1, 0]], False), ([[4, 0, 0], [5, 1, 1]], False), ([[2, 2, 1], [0, 0, 0]], True), ([[0, 0, 0]], True)],
)
def test_a_rule_that_ignores_n_min_is_named(answers: list[list[int]], saves: bool) -> None:
    step = new_step(Scripted(*answers, saves=saves))
    with pytest.raises(
        RollwiseError, match=r"^allocator scripted: .* prompts lack \d rollouts to n_min 2: .* n_min 0$"
    ):
        play(step, lambda rollout: 1)


def test_a_rule_may_serve_n_min_late() -> None:
    record = play(new_step(Scripted([8, 0, 0], [0, 2, 2])), lambda rollout: 1)
    assert record.counts.tolist() == [8, 2, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"waves": 2.5}, "^waves: 2.5 is not a whole number; give one, such as 2$"),
        ({"waves": True}, "^waves: True is not a whole number"),
        ({"budget": 12.0}, "^budget: 12.0 is not a whole number; give one, such as 12$"),
        ({"budget": 10**9, "n_min": 0}, "^budget: 1000000000 .* at most 10000000$"),
        ({"n_min": float("nan")}, "^n_min: nan is not"),
        ({"n_max": "8"}, "^n_max: '8' is not a whole number; give one, such as 8$"),
        ({"prior": (0.0, 1.0)}, r"^prior: Beta\(0, 1\) is out of range; .*1e-09 to 1e\+12"),
        ({"prior": (-1.0, 1.0)}, r"^prior: Beta\(-1, 1\)"),
        ({"prior": (1.0, float("nan"))}, r"^prior: Beta\(1, nan\)"),
        ({"prior": (float("inf"), 1.0)}, r"^prior: Beta\(inf, 1\)"),
        ({"prior": (1e-300, 1.0)}, r"^prior: Beta\(1e-300, 1\)"),
        ({"prior": [(1, 1), (1, 1)]}, r"^prior: does not fit 3 prompts; .*\(3, 2\)$"),
        ({"prior": "1,1"}, "^prior: does not fit"),
        ({"expected_cost": 0}, "^expected_cost: not every number is positive"),
        ({"expected_cost": [1.0, 2.0]}, r"^expected_cost: does not fit 3 prompts; .*\(3,\) or \(3, 2\)$"),
    ],
)
def test_numbers_no_step_can_use_are_named_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RollwiseError, match=message) as caught:
        new_step(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("allocator", ["uniform", "adaroll", "neyman"])
@pytest.mark.parametrize("prior", [(1e-9, 1e-9), (1e-9, 1e12), (1e12, 1e-9), (1e12, 1e12), (1e-3, 1e6)], ids=str)
def test_every_prior_in_range_is_spent_on(allocator: str, prior: tuple[float, float]) -> None:
    many = np.array([prior, (1.0, 1.0), *[(0.5 + k, 1.0) for k in range(10)]])
    for prompts, given_prior in ((4, prior), (12, many)):
        record = play(
            new_step(get_allocator(allocator), prompts, 4 * prompts, prior=given_prior),
            lambda rollout: rollout.wave % 2,
        )
        assert record.counts.sum() == 4 * prompts


def test_a_result_for_another_prompt_or_with_odd_numbers_is_refused() -> None:
    step = new_step()
    wave = step.next_wave()
    assert wave is not None
    back = wave.rollouts[0].result(1)
    for wrong, message in (
        (replace(back, prompt_id="p2"), "issued for prompt 'p0' and came back for 'p2'"),
        (replace(back, tokens=-1), "has -1 tokens"),
        (replace(back, reward="1"), "has reward '1'"),
    ):
        with pytest.raises(RollwiseError, match=f"^observe: .*{message}"):
            step.observe(wrong)


def test_expected_costs_follow_the_belief() -> None:
    step = new_step(prior=(1.0, 3.0), expected_cost=[[100.0, 500.0], [100.0, 500.0], [200.0, 200.0]], waves=1)
    assert step.view.expected_cost.tolist() == [400.0, 400.0, 200.0]
    wave = step.next_wave()
    assert wave is not None
    step.observe(*(rollout.result(1) for rollout in wave.rollouts if rollout.prompt_id == "p0"))
    assert step.view.expected_cost.tolist() == [(5 * 100 + 3 * 500) / 8, 400.0, 200.0]
    assert new_step(expected_cost=[1.0, 2.0, 3.0]).view.expected_cost.tolist() == [1.0, 2.0, 3.0]
    assert new_step().view.digest() != new_step(expected_cost=1.0).view.digest()


@pytest.mark.parametrize("utility", ["sum_variance", "min_squared_advantage", "min_variance"])
@pytest.mark.parametrize(("prompts", "budget"), [(2, 10**6), (64, 10**6)])
def test_a_budget_no_plan_reaches_is_refused_at_once(utility: str, prompts: int, budget: int) -> None:
    step = new_step(get_allocator("adaroll", utility=utility), prompts, budget, n_min=0)
    with pytest.raises(RollwiseError, match=rf"^budget: {budget} rollouts .* at most {1024 * prompts}, or allocator"):
        step.next_wave()


@pytest.mark.parametrize("allocator", ["uniform", "adaroll", "neyman"])
def test_many_rollouts_of_few_prompts_are_planned(allocator: str) -> None:
    prior = np.array([(1.0, 1.0), (1.0, 2.0)])
    record = play(new_step(get_allocator(allocator), 2, 1500, prior=prior, waves=2), lambda rollout: rollout.wave)
    assert record.counts.sum() == 1500


def test_many_prompts_are_allocated_in_one_step() -> None:
    prompts = 20_000
    prior = np.random.default_rng(0).gamma(2.0, 0.6, (prompts, 2)) + 0.05
    step = new_step(
        get_allocator("adaroll", utility="sum_variance"), prompts, 2 * prompts, n_min=0, waves=2, prior=prior
    )
    wave = step.next_wave()
    assert wave is not None
    assert 0 < wave.counts.sum() < 2 * prompts


def test_a_budget_in_tokens_is_kept_by_costs_per_prompt_and_outcome() -> None:
    costs = np.array([[10.0, 40.0]] * 10 + [[400.0, 1000.0]] * 10)
    rule = get_allocator("adaroll", utility="sum_variance", token_budget=6000.0)
    step = new_step(rule, 20, 160, n_min=0, waves=3, expected_cost=costs)
    while wave := step.next_wave():
        for rollout in wave.rollouts:
            right = int(rollout.id[2:]) % 2
            step.observe(rollout.result(right, tokens=int(costs[int(rollout.prompt_id[1:]), 1 - right])))
    spent = step.view.tokens_spent
    record = step.close()
    assert spent.sum() <= 6000 + 1000, "at most what one rollout may take beyond its expectation"
    assert record.counts[:10].sum() > record.counts[10:].sum()
