"""The trainer through its real call: drop-in, exact budgets, true logs, refusals that name the setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset
from peft import LoraConfig
from trl import GRPOTrainer

from rollwise.integrations.trl import RollwiseGRPOConfig, RollwiseGRPOTrainer
from rollwise.types import IntArray, RollwiseError, StepView
from tests.integrations.trl.support import (
    RecordedRollwise,
    RecordedStock,
    brevity,
    digits,
    distance,
    has_answer,
    rollwise,
    same,
    save_absolute_model,
    settings,
    stock,
    tokenizer,
    train,
)
from tests.integrations.trl.worker import OneTakesAll


def ledger_lines(trainer: RollwiseGRPOTrainer, kind: str) -> list[dict[str, Any]]:
    text = (trainer.rollwise_folder / "ledger.jsonl").read_text()
    return [line for line in map(json.loads, text.splitlines()) if line["type"] == kind]


@pytest.mark.parametrize("extra", [{}, {"force_waves": True, "waves": 1}], ids=["stock path", "wave-and-merge path"])
@pytest.mark.parametrize("allocator", ["uniform", "observe"])
def test_uniform_is_bit_identical_to_stock(model: str, tmp_path: Path, allocator: str, extra: dict[str, Any]) -> None:
    shape = {"steps_per_generation": 2, "num_iterations": 2, "gradient_accumulation_steps": 1, "max_steps": 6}
    plain = train(GRPOTrainer, stock(tmp_path / "a", beta=0.1, **shape), model)
    config = rollwise(tmp_path / "b", allocator=allocator, beta=0.1, **shape, **extra)
    ours = train(RollwiseGRPOTrainer, config, model)
    assert ours["losses"] == plain["losses"]
    assert same(ours["parameters"], plain["parameters"])
    for theirs, entry in zip(plain["history"], ours["history"], strict=True):
        timed = {"step_time", "train_runtime"}
        assert {key: entry[key] for key in theirs if key not in timed} == {
            key: value for key, value in theirs.items() if key not in timed
        }


@pytest.mark.parametrize(
    ("loss", "scale"),
    zip(
        ["grpo", "dapo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo", "dapo"],
        ["group", "batch", "none"] * 3,
        strict=True,
    ),
)
def test_recorded_completions_in_waves_match_stock(model: str, tmp_path: Path, loss: str, scale: str) -> None:
    shape = {"loss_type": loss, "scale_rewards": scale, "reward_weights": [1.0, 0.3], "max_steps": 1}
    rewards = [has_answer, brevity]
    plain = train(RecordedStock, stock(tmp_path / "a", **shape), model, rewards)
    config = rollwise(tmp_path / "b", allocator="uniform", force_waves=True, outcome="has_answer", **shape)
    waves = train(RecordedRollwise, config, model, rewards)
    assert waves["trainer"].calls == [4] * 4
    assert waves["losses"] == pytest.approx(plain["losses"], abs=1e-6)
    assert max(distance(a, b) for a, b in zip(plain["gradients"], waves["gradients"], strict=True)) < 1e-6


@pytest.mark.parametrize(
    "extra",
    [
        {"multi_objective_aggregation": "normalize_then_sum"},
        {"mask_truncated_completions": True},
        {"importance_sampling_level": "sequence", "loss_type": "grpo", "beta": 0.1},
    ],
    ids=lambda extra: next(iter(extra)),
)
def test_settings_of_trl_match_stock_in_waves(model: str, tmp_path: Path, extra: dict[str, Any]) -> None:
    rewards = [has_answer, brevity]
    plain = train(RecordedStock, stock(tmp_path / "a", max_steps=1, **extra), model, rewards)
    config = rollwise(
        tmp_path / "b", allocator="uniform", force_waves=True, outcome="has_answer", max_steps=1, **extra
    )
    waves = train(RecordedRollwise, config, model, rewards)
    assert waves["trainer"].calls == [4] * 4
    assert max(distance(a, b) for a, b in zip(plain["gradients"], waves["gradients"], strict=True)) < 1e-6
    assert 0.0 < plain["history"][0]["completions/clipped_ratio"] < 1.0, "some recorded completions are cut short"


@pytest.mark.parametrize("waves", [1, 2, 3, 4, 8])
def test_every_step_spends_exactly_its_budget(model: str, tmp_path: Path, waves: int) -> None:
    trainer = train(RecordedRollwise, rollwise(tmp_path, waves=waves, max_steps=3), model)["trainer"]
    assert sum(trainer.calls) == 3 * 16
    assert len(ledger_lines(trainer, "rollout")) == 3 * 16
    assert [line["rollouts"] for line in ledger_lines(trainer, "step")] == [16, 16, 16]
    assert trainer.state.log_history[2]["rollwise/rollouts_spent"] == 3 * 16


def test_sequential_mode_decides_one_rollout_at_a_time(model: str, tmp_path: Path) -> None:
    trainer = train(RecordedRollwise, rollwise(tmp_path, sequential=True, n_min=0, max_steps=1), model)["trainer"]
    assert trainer.calls == [1] * 16


def test_a_budget_in_tokens_is_told_what_rollouts_took(model: str, tmp_path: Path) -> None:
    config = rollwise(
        tmp_path, utility="sum_variance", allocator_settings={"token_budget": 50}, max_steps=1, save_strategy="steps"
    )
    trainer = train(RecordedRollwise, config, model)["trainer"]
    rows = trainer.last_record.rollouts
    # the plan keeps to what rollouts are expected to take: off by one of the longest at most
    assert sum(row.tokens for row in rows) == pytest.approx(50, abs=6) and len(rows) < 16
    means = [np.mean([row.tokens for row in rows if row.reward == reward]) for reward in (1.0, 0.0)]
    assert trainer._costs.for_step(["new"])[0] == pytest.approx(means)
    assert trainer._state()["levers"]["costs"]["prompt_ids"] == list(trainer.last_record.prompt_ids)


def test_one_prompt_may_take_everything(model: str, tmp_path: Path) -> None:
    config = rollwise(tmp_path, n_min=0, max_steps=1)
    result = train(RecordedRollwise, config, model, allocator=OneTakesAll())
    record = result["trainer"].last_record
    assert sorted(record.counts) == [0, 0, 0, 16]
    assert np.isfinite(result["losses"]).all()


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_all_solved_and_all_unsolved_batches_train_on_nothing(model: str, tmp_path: Path, reward: float) -> None:
    def constant(completions: list[str], **_: Any) -> list[float]:
        return [reward] * len(completions)

    result = train(RecordedRollwise, rollwise(tmp_path, max_steps=1), model, constant)
    record = result["trainer"].last_record
    assert record.counts.sum() == 16
    assert not record.advantages.any()
    assert result["history"][0]["frac_reward_zero_std"] == 1.0


def test_a_prompt_that_occurs_twice_shares_one_group(model: str, tmp_path: Path) -> None:
    data = Dataset.from_dict(
        {"prompt": ["1=", "1=", "2=", "3="], "answer": ["1", "1", "2", "3"], "name": list("aabc")}
    )
    config = rollwise(tmp_path, prompt_id_column="name", max_steps=1)
    record = train(RecordedRollwise, config, model, train_dataset=data)["trainer"].last_record
    assert sorted(record.prompt_ids) == ["a", "b", "c"]
    assert record.counts.sum() == 16


def test_different_prompts_under_one_id_are_refused(model: str, tmp_path: Path) -> None:
    for name in ("same", None):
        data = digits().add_column("name", [name] * 24)
        with pytest.raises(RollwiseError, match="^prompt_id_column: "):
            train(RecordedRollwise, rollwise(tmp_path, prompt_id_column="name"), model, train_dataset=data)


def test_advantages_are_centred_by_group_whatever_the_sizes(model: str, tmp_path: Path) -> None:
    record = train(RecordedRollwise, rollwise(tmp_path, max_steps=1), model)["trainer"].last_record
    assert len(set(record.counts)) > 1
    for slot, prompt in enumerate(record.prompt_ids):
        rows = record.slots == slot
        rewards = np.array([rollout.reward for rollout in record.rollouts])[rows]
        expected = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
        assert record.advantages[rows] == pytest.approx(expected, abs=1e-6), prompt


def test_prompts_weigh_alike_per_prompt(model: str, tmp_path: Path) -> None:
    record = train(RecordedRollwise, rollwise(tmp_path, weighting="per_prompt", max_steps=1), model)[
        "trainer"
    ].last_record
    assert len(set(record.counts)) > 1
    sums = np.bincount(record.slots, weights=record.weights)
    assert sums == pytest.approx(np.full(4, 16 / 4))


def test_an_objective_weighs_what_trains(model: str, tmp_path: Path) -> None:
    shape = {"allocator": "uniform", "prior": "carried", "scale_rewards": "none", "steps_per_generation": 2}
    shape |= {"max_steps": 4, "num_train_epochs": 1}
    repeated = digits(4)
    plain, weighed = (
        train(RecordedRollwise, rollwise(tmp_path / name, objective=name, **shape), model, train_dataset=repeated)
        for name in ("none", "log")
    )
    record = weighed["trainer"].last_record
    assert len(set(record.factors["objective"])) > 1, "the second visit opens with carried beliefs"
    assert weighed["losses"][0] == plain["losses"][0], "the first visit knows nothing, so all prompts weigh 1"
    assert weighed["losses"][-1] != plain["losses"][-1]


def test_an_objective_on_top_of_normalised_advantages_is_warned_of(
    model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train(RollwiseGRPOTrainer, rollwise(tmp_path, objective="log", max_steps=1), model)
    assert "warning: objective: log on top of advantage grpo weighs twice" in capfd.readouterr().out


def test_logs_and_the_completions_table_show_the_true_values(model: str, tmp_path: Path) -> None:
    def noted(completions: list[str], log_extra: Any, log_metric: Any, **columns: Any) -> list[float]:
        assert "rollwise_index" not in columns
        log_extra("length", [len(text) for text in completions])
        log_metric("letters", float(np.mean([len(text) for text in completions])))
        return has_answer(completions, columns["answer"])

    config = rollwise(tmp_path, max_steps=1, log_completions=True, num_completions_to_print=0)
    result = train(RecordedRollwise, config, model, noted)
    record = result["trainer"].last_record
    entry = result["history"][0]
    table = pd.read_parquet(next((tmp_path / "completions").glob("*.parquet")))
    assert len(table) == 16
    assert table["advantage"].to_numpy() == pytest.approx(record.advantages)
    assert table["noted"].tolist() == [rollout.reward for rollout in record.rollouts]
    assert table["group_id"].tolist() == [rollout.group_id for rollout in record.rollouts]
    assert table["group_size"].tolist() == record.counts[record.slots].tolist()
    assert table["length"].tolist() == [len(text) for text in table["completion"]]
    assert entry["letters"] == pytest.approx(table["length"].mean()), "a mean over rows, whatever the waves' sizes"
    lengths = [rollout.tokens for rollout in record.rollouts]
    assert entry["completions/min_length"] == min(lengths)
    assert entry["completions/max_length"] == max(lengths)
    assert entry["completions/mean_length"] == pytest.approx(np.mean(lengths))
    by_prompt = table.groupby("group_id")["noted"]
    assert entry["reward"] == pytest.approx(table["noted"].mean())
    assert entry["rollwise/reward_prompt_mean"] == pytest.approx(by_prompt.mean().mean())
    assert entry["frac_reward_zero_std"] == pytest.approx((by_prompt.std() == 0).mean())
    assert entry["rollwise/informative_rollout_share"] == pytest.approx(
        table["group_id"].map(by_prompt.std() > 0).mean()
    )


@pytest.mark.parametrize(
    "extra",
    [
        {"mask_truncated_completions": True},
        {"importance_sampling_level": "sequence", "loss_type": "grpo"},
        {"gradient_accumulation_steps": 4, "per_device_train_batch_size": 4},
        {"steps_per_generation": 4, "gradient_accumulation_steps": 1},
        {"beta": 0.04, "num_iterations": 2},
        {"multi_objective_aggregation": "normalize_then_sum"},
        {"utility": "sum_squared_advantage", "advantage_form": "normalised"},
        {"utility": "sum_max_reward", "n_max": 6},
        {"shuffle_dataset": False, "dataloader_num_workers": 1},
    ],
    ids=lambda extra: next(iter(extra)),
)
def test_settings_of_trl_work_with_adaptive_steps(model: str, tmp_path: Path, extra: dict[str, Any]) -> None:
    result = train(RollwiseGRPOTrainer, rollwise(tmp_path, **extra), model)
    assert np.isfinite(result["losses"]).all()
    assert result["trainer"].last_record.counts.sum() == result["trainer"].args.generation_batch_size


def test_conversational_prompts_and_a_chat_template(model: str, tmp_path: Path) -> None:
    chat = tokenizer()
    chat.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    rows = digits()
    rows = rows.map(lambda row: {"prompt": [{"role": "user", "content": row["prompt"]}]})

    def in_message(completions: list[Any], answer: list[str], **_: Any) -> list[float]:
        return has_answer([completion[0]["content"] for completion in completions], answer)

    config = rollwise(tmp_path)
    result = train(RollwiseGRPOTrainer, config, model, in_message, train_dataset=rows, processing_class=chat)
    assert result["trainer"].last_record.counts.sum() == 16


def test_peft_trains_the_adapter_only(model: str, tmp_path: Path) -> None:
    config = rollwise(tmp_path, beta=0.1, learning_rate=0.1)
    adapter = LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM")
    result = train(
        RollwiseGRPOTrainer, config, model, [has_answer, brevity], outcome="has_answer", peft_config=adapter
    )
    assert result["trainer"].model.peft_config
    assert any(float(grad.abs().max()) > 0 for grad in result["gradients"][0])


def test_absolute_positions_score_alike_in_a_wave_and_in_the_block(tmp_path: Path) -> None:
    shape = {"steps_per_generation": 2, "num_iterations": 2, "gradient_accumulation_steps": 1, "max_steps": 1}
    absolute = save_absolute_model(tmp_path / "gpt2")
    result = train(RecordedRollwise, rollwise(tmp_path / "run", beta=0.1, **shape), absolute)
    assert len(set(result["trainer"].last_record.counts)) > 1
    assert result["history"][0]["kl"] == pytest.approx(0.0, abs=1e-6)


def test_evaluation_is_the_stock_one(model: str, tmp_path: Path) -> None:
    shape = {"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 4, "num_generations_eval": 2}
    result = train(RollwiseGRPOTrainer, rollwise(tmp_path, **shape), model, eval_dataset=digits(4))
    evaluations = [entry for entry in result["trainer"].state.log_history if "eval_reward" in entry]
    assert len(evaluations) == 2
    assert len(ledger_lines(result["trainer"], "rollout")) == 2 * 16


def test_a_stream_with_ids_trains(model: str, tmp_path: Path) -> None:
    rows = digits().add_column("name", [f"row {index}" for index in range(24)])
    config = rollwise(tmp_path, prompt_id_column="name")
    trainer = train(RollwiseGRPOTrainer, config, model, train_dataset=rows.to_iterable_dataset())["trainer"]
    assert all(prompt.startswith("row ") for prompt in trainer.last_record.prompt_ids)


def test_observe_says_what_other_rules_would_have_changed(model: str, tmp_path: Path) -> None:
    entry = train(RollwiseGRPOTrainer, rollwise(tmp_path, allocator="observe"), model)["history"][0]
    for utility in ("min_variance", "sum_variance", "sum_max_reward"):
        assert 0.0 <= entry[f"rollwise/would/{utility}/dead_prompt_share"] <= 1.0
        assert 0.0 <= entry[f"rollwise/would/{utility}/informative_rollout_share"] <= 1.0
        assert 0.0 <= entry[f"rollwise/would/{utility}/unsolved_share"] <= 1.0


# -- outcome is not reward -----------------------------------------------------------------------------------------


def test_a_shaped_reward_without_outcome_stops_and_asks(model: str, tmp_path: Path) -> None:
    with pytest.raises(RollwiseError, match=r"^outcome: the summed reward takes values such as .*outcome_threshold"):
        train(RollwiseGRPOTrainer, rollwise(tmp_path), model, [has_answer, brevity])


def test_beliefs_follow_the_outcome_and_not_the_shaped_reward(model: str, tmp_path: Path) -> None:
    alone = train(RecordedRollwise, rollwise(tmp_path / "a", max_steps=1), model)["trainer"].last_record
    config = rollwise(tmp_path / "b", max_steps=1, outcome="has_answer")
    shaped = train(RecordedRollwise, config, model, [has_answer, brevity])["trainer"].last_record
    assert shaped.counts.tolist() == alone.counts.tolist()
    assert shaped.successes.tolist() == alone.successes.tolist()


def test_an_outcome_callable_and_a_threshold_agree(model: str, tmp_path: Path) -> None:
    def short(completions: list[str], **_: Any) -> list[bool]:
        return [1.0 / (1 + len(text)) >= 0.3 for text in completions]

    records = [
        train(RecordedRollwise, rollwise(tmp_path / "a", max_steps=1), model, brevity, outcome=short),
        train(RecordedRollwise, rollwise(tmp_path / "b", max_steps=1, outcome_threshold=0.3), model, brevity),
    ]
    first, second = (result["trainer"].last_record for result in records)
    assert first.successes.sum() > 0
    assert first.successes.tolist() == second.successes.tolist()


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_an_abstaining_reward_is_unknown_and_not_failure(model: str, tmp_path: Path, nothing: Any) -> None:
    def shy(completions: list[str], answer: list[str], **_: Any) -> list[Any]:
        right = has_answer(completions, answer)
        return [nothing if len(text) % 2 else value for text, value in zip(completions, right, strict=True)]

    record = train(RecordedRollwise, rollwise(tmp_path, max_steps=1), model, shy)["trainer"].last_record
    assert record.unknown.sum() > 0
    assert (record.successes + record.failures + record.unknown).tolist() == record.counts.tolist()
    for rollout, advantage in zip(record.rollouts, record.advantages, strict=True):
        assert rollout.reward is not None or advantage == 0.0


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda n: [float("inf")] * n, "returned inf; a reward is finite"),
        (lambda n: ["1"] * n, "returned '1'; a reward is a number"),
        (lambda n: [1.0], "returned 1 rewards for"),
        (lambda n: [1.0] * (n + 1), "one each"),
        (lambda n: 1.0, "returned float; return a list"),
        (lambda n: 1 / 0, "raised ZeroDivisionError: division by zero"),
    ],
    ids=["infinite", "string", "too few", "too many", "no list", "raises"],
)
@pytest.mark.parametrize("path", ["uniform", "adaroll", "async"])
def test_a_faulty_reward_function_is_named(model: str, tmp_path: Path, returned: Any, message: str, path: str) -> None:
    def faulty(completions: list[str], **_: Any) -> Any:
        return returned(len(completions))

    async def faulty_async(completions: list[str], **_: Any) -> Any:
        return returned(len(completions))

    function = faulty_async if path == "async" else faulty
    config = rollwise(tmp_path, allocator="adaroll" if path == "async" else path)
    with pytest.raises(RollwiseError, match=message) as caught:
        train(RollwiseGRPOTrainer, config, model, function)
    assert str(caught.value).startswith(f"reward function {function.__name__!r} ")


# -- refusals ------------------------------------------------------------------------------------------------------


def test_a_rule_that_saves_everything_is_named(model: str, tmp_path: Path) -> None:
    class Miser(OneTakesAll):
        name, saves = "miser", True

        def next_wave(self, view: StepView, rng: Any) -> IntArray:
            return np.zeros(view.size, dtype=np.int64)

    with pytest.raises(RollwiseError, match="^allocator: miser gave step 0 no rollout"):
        train(RollwiseGRPOTrainer, rollwise(tmp_path, n_min=0), model, allocator=Miser())


def test_the_default_trains_like_stock_and_reports(model: str, tmp_path: Path) -> None:
    plain = train(GRPOTrainer, stock(tmp_path / "stock"), model)
    found = train(RollwiseGRPOTrainer, RollwiseGRPOConfig(**settings(tmp_path / "ours")), model)
    assert same(found["parameters"], plain["parameters"])
    logged = [key for entry in found["trainer"].state.log_history for key in entry]
    assert "rollwise/would/min_variance/dead_prompt_share" in logged


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"allocator": "adarol"}, "^allocator: .*did you mean 'adaroll'"),
        ({"utility": "min_varience"}, "utility.*did you mean 'min_variance'"),
        ({"weighting": "prompt"}, "^weighting: "),
        ({"advantage": "grop"}, "^advantage: .*did you mean 'grpo'"),
        ({"prior": "0,1"}, "^prior: .*two positive numbers"),
        ({"prior": "carryed"}, "^prior: .*did you mean 'carried'"),
        ({"objective": "pass@0"}, "^objective: .*pass@4"),
        ({"waves": 0}, "^waves: 0; give 1 or more"),
        ({"remove_unused_columns": True}, "^remove_unused_columns: "),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_setting_is_refused_by_the_config(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RollwiseError, match=message) as caught:
        RollwiseGRPOConfig(**settings(tmp_path, **changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "arguments", "message"),
    [
        ({"n_min": 5}, {}, "^n_min: 5 for 4 prompts and 16 rollouts; at most 4"),
        ({"n_max": 3}, {}, "^n_max: 3 for 4 prompts and 16 rollouts; at least 4"),
        ({"per_device_train_batch_size": 4, "gradient_accumulation_steps": 1}, {}, "steps_per_generation"),
        ({"outcome": "has_anser"}, {}, "^outcome: .*did you mean 'has_answer'"),
        ({"outcome": "no_such_module:f"}, {}, "^outcome: .*no module 'no_such_module'"),
        ({}, {"rollout_func": lambda prompts, trainer: {}}, "^rollout_func: "),
        ({}, {"environment_factory": object}, "^environment_factory: "),
        ({}, {"train_dataset": digits().to_iterable_dataset()}, "^prompt_id_column: a streamed"),
        ({}, {"train_dataset": digits().rename_column("prompt", "question")}, "no column 'prompt' .*question"),
        ({}, {"train_dataset": digits().add_column("image", [None] * 24)}, "images are not supported"),
        ({"prompt_id_column": "uid"}, {}, "^prompt_id_column: no column 'uid'"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_rollout(
    model: str, tmp_path: Path, changes: dict[str, Any], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(RollwiseError, match=message) as caught:
        train(RollwiseGRPOTrainer, rollwise(tmp_path, **changes), model, **arguments)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "rollwise").exists()


def test_a_plain_grpo_config_is_refused(model: str, tmp_path: Path) -> None:
    with pytest.raises(RollwiseError, match="^args: pass a RollwiseGRPOConfig"):
        train(RollwiseGRPOTrainer, stock(tmp_path), model)


@pytest.mark.parametrize("prompts", [2, 4])
def test_few_prompts_per_step_are_warned_of_with_the_expected_gain(
    model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], prompts: int
) -> None:
    train(RollwiseGRPOTrainer, rollwise(tmp_path, per_device_train_batch_size=prompts * 2, max_steps=1), model)
    assert ("expected min_variance +" in capfd.readouterr().out) == (prompts < 4)


def test_the_start_says_what_a_step_is(model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    train(RollwiseGRPOTrainer, rollwise(tmp_path, max_steps=1), model)
    printed = capfd.readouterr().out
    assert "B = 4 prompts x G = 4 rollouts = N = 16 per step" in printed
    assert "allocator adaroll(min_variance) | 4 waves | n_min 2" in printed
    assert "weighting per_rollout | advantage grpo | objective none | outcome from the summed reward" in printed
    assert "not supported: rollout_func" in printed
    assert "refused" not in printed
