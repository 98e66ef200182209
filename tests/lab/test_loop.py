"""One run: exact budgets, the same result from the same seed, and after being cut short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rollwise.allocators import Uniform
from rollwise.lab.arms import Arm, parse_arm
from rollwise.lab.loop import Run
from rollwise.lab.measure import success_rates
from rollwise.lab.pools import draw_problems
from rollwise.lab.tasks import get_task
from rollwise.lab.training import Training
from rollwise.lab.warmup import Start, Warmup, build_model, load_model
from rollwise.ledger import Ledger
from rollwise.types import IntArray, RollwiseError, StepView

from .support import TRAINING, WARMUP

UTILITIES = (
    "min_variance",
    "min_squared_advantage",
    "sum_max_reward",
    "min_max_reward",
    "sum_variance",
    "sum_squared_advantage",
)
ARMS = (
    "uniform",
    *UTILITIES,
    "uniform@loss=dapo",
    "uniform@loss=dr_grpo@objective=log@weigh_by=oracle",
    "uniform@advantage=predictive@prior=empirical",
    "uniform@loss=dr_grpo@objective=pass@4@prior=carried",
    "sum_variance@loss=dr_grpo@weighting=per_prompt@updates=2@schedule=linear@n_min=0@waves=2",
    "sum_variance@prior=oracle",
    "min_variance@prior=carried@weigh_by=carried@objective=log@advantage=dr_grpo",
    "neyman@prior=carried@loss=dr_grpo@objective=pass@2",
)


def without_seconds(result: dict[str, Any]) -> dict[str, Any]:
    points = [{key: value for key, value in point.items() if key != "seconds"} for point in result["curve"]]
    return {key: value for key, value in result.items() if not key.endswith("seconds")} | {"curve": points}


@pytest.mark.parametrize("line", ARMS)
def test_every_arm_spends_the_same_rollouts_and_trains(line: str, start: Start) -> None:
    run = Run(parse_arm(line), TRAINING, start)
    result = run.finish()
    assert result["rollouts"] == sum(result["metrics"]["rollouts"]) == 4 * 24
    assert result["steps"] == 4
    assert [point["rollouts"] for point in result["curve"]] == [0, 48, 96]
    assert all(np.isfinite(list(run.model.parameters())[0].detach().numpy()).ravel())
    moved = [not torch.equal(weight, start.weights[name]) for name, weight in run.model.state_dict().items()]
    assert any(moved)


def test_the_ledger_of_a_run_holds_every_rollout_and_token(start: Start, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    run = Run(parse_arm("min_variance"), TRAINING, start, ledger=ledger)
    records = []
    while not run.done:
        records.append(run.step())
    assert ledger.paid == run.progress.spent == 96
    assert sum(row.tokens for record in records for row in record.rollouts) == run.progress.tokens > 96


@pytest.mark.parametrize(
    "line",
    [
        "uniform",
        "sum_variance@prior=carried@objective=log@weigh_by=carried@loss=dr_grpo",
        "uniform@selector=mopps@curator=replay@curator.warmup=1",
    ],
)
def test_a_seed_gives_one_result_also_when_cut_short(line: str, start: Start, tmp_path: Path) -> None:
    arm, path = parse_arm(line), tmp_path / "state.pt"
    whole, again = Run(arm, TRAINING, start), Run(arm, TRAINING, start)
    result = whole.finish()
    assert without_seconds(again.finish()) == without_seconds(result)

    cut = Run(arm, TRAINING, start, state=path)
    for _ in range(3):
        cut.step()
    resumed = Run(arm, TRAINING, start, state=path)
    assert resumed.progress.step == 2
    assert without_seconds(resumed.finish()) == without_seconds(result)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name])


def test_another_arm_s_state_is_refused(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    Run(parse_arm("uniform"), TRAINING, start, state=path).finish()
    with pytest.raises(RollwiseError, match="was saved by another arm"):
        Run(parse_arm("uniform@lr=1e-3"), TRAINING, start, state=path)


def test_arms_of_a_seed_meet_the_same_prompts_in_the_same_order(start: Start) -> None:
    runs = [Run(parse_arm(line), TRAINING, start) for line in ("uniform", "sum_max_reward")]
    met = [[run.step().prompt_ids for _ in range(4)] for run in runs]
    assert met[0] == met[1]
    assert len({key for ids in met[0] for key in ids}) == 24


class Frugal(Uniform):
    """Two rollouts a prompt, and the rest of the budget saved."""

    name = "frugal"
    saves = True

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        return np.where(view.paid == 0, 2, 0)


def test_a_rule_that_saves_ends_at_the_same_rollouts_with_more_steps(start: Start) -> None:
    run = Run(parse_arm("uniform"), TRAINING, start)
    run.rule = Frugal()
    result = run.finish()
    assert result["rollouts"] == 96 and result["steps"] == 8
    assert [point["rollouts"] for point in result["curve"]] == [0, 48, 96]

    matched = Run(parse_arm("uniform"), replace(TRAINING, until="steps"), start)
    matched.rule = Frugal()
    result = matched.finish()
    assert result["rollouts"] == 48 and result["steps"] == 4


def test_the_last_step_takes_what_is_left_of_the_rollouts(start: Start) -> None:
    run = Run(parse_arm("uniform"), TRAINING, start)
    run.progress.spent = 86
    record = run.step()
    assert record.counts.tolist() == [2] * 5 and run.done


def test_a_single_rollout_that_is_left_is_spent_whatever_the_fewest_per_prompt(start: Start) -> None:
    run = Run(parse_arm("uniform"), TRAINING, start)
    run.progress.spent = 95
    record = run.step()
    assert record.counts.tolist() == [1] and run.done


@pytest.mark.parametrize("line", ["uniform", "min_variance@budget=tokens", "sum_variance@budget=tokens@costs=pool"])
def test_runs_that_end_by_tokens_generate_equally_many(line: str, start: Start, tmp_path: Path) -> None:
    training, path = replace(TRAINING, until="tokens", tokens=180), tmp_path / "state.pt"
    result = Run(parse_arm(line), training, start).finish()
    # the last step's rollouts are as many as the tokens left make at the mean: off by less than a few completions
    assert 720 <= result["tokens"] < 720 + 30 and result["axis"] == "tokens"
    assert [point["tokens"] // 360 for point in result["curve"]] == [0, 1, 2]

    cut = Run(parse_arm(line), training, start, state=path)
    for _ in range(3):
        cut.step()
    assert without_seconds(Run(parse_arm(line), training, start, state=path).finish()) == without_seconds(result)


def test_a_step_that_spends_tokens_keeps_to_them_and_is_told_what_rollouts_cost(start: Start) -> None:
    training = replace(TRAINING, until="tokens", tokens=180, steps=40)
    run = Run(parse_arm("sum_variance@budget=tokens@prior=carried"), training, start)
    records = [run.step() for _ in range(24)]
    assert run.costs is not None
    spent = [sum(row.tokens for row in record.rollouts) for record in records]
    assert np.mean(spent[2:]) == pytest.approx(180, abs=12)
    lengths = {
        key: [r.tokens for rec in records for r in rec.rollouts if r.prompt_id == key] for key in start.pool.ids
    }
    seen = [key for key, found in lengths.items() if len(found) >= 8]
    costs = run.costs.for_step(seen).mean(axis=1)
    assert np.corrcoef(costs, [np.mean(lengths[key]) for key in seen])[0, 1] > 0.8
    # short completions leave room for more rollouts than a step counts otherwise
    assert max(record.counts.sum() for record in records) > training.budget


def test_the_learning_rate_falls_by_rollouts_spent(start: Start) -> None:
    run = Run(parse_arm("uniform@schedule=linear@lr=1e-2"), TRAINING, start)
    run.progress.step, run.progress.spent = 1000, 72
    run.step()
    assert run.optimizer.param_groups[0]["lr"] == pytest.approx(1e-2 * (1 - 72 / 96))


def test_a_step_without_any_signal_leaves_the_weights_alone() -> None:
    warmup = Warmup(task="chains", pool_size=6)
    training = Training(warmup, steps=3, prompts=6, rollouts=4)
    task = get_task("chains")
    torch.manual_seed(0)
    weights = {name: weight.clone() for name, weight in build_model(task, "tiny").state_dict().items()}
    pool = draw_problems(task, 48, np.random.default_rng(0))
    long = pool.take(np.flatnonzero(pool.classes >= 12))
    run = Run(parse_arm("uniform"), training, Start(weights, long, 0, 0.0))
    result = run.finish()
    assert result["metrics"]["dead_prompt_share"] == [1.0] * 3
    assert result["metrics"]["trained_rollouts"] == [0.0] * 3
    for name, weight in run.model.state_dict().items():
        assert torch.equal(weight, weights[name])


def test_objective_weights_are_those_of_the_belief_asked_for(start: Start) -> None:
    curve = ((0.0, 2.0), (1.0, 0.0))
    oracle = Run(Arm("a", curve=curve, weigh_by="oracle", strength=1e6), TRAINING, start)
    problems = start.pool.take(oracle._choose()[0])
    rates = oracle._rates(problems)
    assert rates is not None
    weights = oracle._weights(problems, rates)
    assert weights == pytest.approx((1 - rates) / (1 - rates).mean(), rel=1e-4)

    held = Run(Arm("b", curve=curve, prior="oracle", strength=1e6), TRAINING, start)
    record = held.step()
    assert record.factors["objective"] == pytest.approx(weights[record.slots], rel=1e-4)
    assert held._weights(problems, rates).tolist() == [1.0] * len(problems)


def test_a_prompt_s_first_rollouts_are_the_same_whatever_the_rule(start: Start) -> None:
    records = [Run(parse_arm(line), TRAINING, start).step() for line in ("uniform", "sum_max_reward@waves=3")]
    assert records[0].counts.tolist() != records[1].counts.tolist()
    for slot in range(TRAINING.prompts):
        seen = [[row.tokens for row, at in zip(r.rollouts, r.slots, strict=True) if at == slot] for r in records]
        shared = min(map(len, seen))
        assert shared >= 2 and seen[0][:shared] == seen[1][:shared]


def test_rewards_teach(start: Start) -> None:
    task = get_task("sort")
    rates = success_rates(load_model(task, "tiny", start.weights), task, start.pool)
    pool = start.pool.take(np.argsort(-rates)[8:32])
    training = Training(replace(WARMUP, pool_size=24), steps=25, prompts=24)
    run = Run(parse_arm("uniform@lr=1e-3"), training, replace(start, pool=pool))
    run.finish()
    before, after = np.sort(rates)[::-1][8:32].mean(), success_rates(run.model, task, pool).mean()
    assert after > before + 0.2
