"""Settings and data that cannot work: refused before the first rollout, in one line that names them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from rollwise.integrations.trl import RollwiseGRPOConfig, RollwiseGRPOTrainer
from rollwise.integrations.trl.dataset import RESERVED
from rollwise.types import RollwiseError
from tests.integrations.trl.support import brevity, digits, has_answer, rollwise, settings, train


@pytest.mark.parametrize(
    ("setting", "value", "advice"),
    [
        ("temperature", math.inf, "give a finite number"),
        ("temperature", 0.0, "give a number above 0, such as 1.0"),
        ("learning_rate", math.inf, "give a finite number"),
        ("learning_rate", math.nan, "give a finite number"),
        ("beta", math.inf, "give a finite number"),
        ("epsilon", math.nan, "give a finite number"),
        ("reward_weights", [math.nan], "give finite numbers"),
        ("reward_weights", [1.0, math.inf], "give finite numbers"),
        ("outcome_threshold", math.nan, "give a finite number"),
        ("prior_discount", math.inf, "give a finite number"),
        ("max_completion_length", 0, "give 1 or more"),
    ],
)
def test_a_number_nobody_can_train_with_is_refused_by_the_config(
    tmp_path: Path, setting: str, value: Any, advice: str
) -> None:
    with pytest.raises(RollwiseError) as caught:
        RollwiseGRPOConfig(**settings(tmp_path, **{setting: value}))
    assert str(caught.value) == f"{setting}: {value}; {advice}"


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([has_answer], "reward_weights: 2 weights for 1 reward functions; give one each"),
        ([has_answer, brevity, brevity], "reward_weights: 2 weights for 3 reward functions; give one each"),
        (has_answer, "reward_weights: 2 weights for 1 reward functions; give one each"),
        ([], "reward_funcs: none given; pass one reward function or a list of them"),
    ],
)
def test_weights_and_reward_functions_are_counted(tmp_path: Path, rewards: Any, message: str) -> None:
    config = rollwise(tmp_path, reward_weights=[1.0, 2.0])
    with pytest.raises(RollwiseError) as caught:
        RollwiseGRPOTrainer("no model is loaded", rewards, config, digits())
    assert str(caught.value) == message


@pytest.mark.parametrize("weights", [[0.0], [0, 0]])
def test_weights_that_train_nothing_are_refused(tmp_path: Path, weights: list[float]) -> None:
    config = rollwise(tmp_path, reward_weights=weights)
    with pytest.raises(
        RollwiseError, match="^reward_weights: all are 0, so that nothing trains; give one that is not$"
    ):
        RollwiseGRPOTrainer("no model is loaded", [has_answer, brevity][: len(weights)], config, digits())


@pytest.mark.parametrize("allocator", ["uniform", "adaroll"])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_data_that_fill_no_step_are_refused(tmp_path: Path, allocator: str, rows: int) -> None:
    with pytest.raises(RollwiseError) as caught:
        RollwiseGRPOTrainer("no model is loaded", has_answer, rollwise(tmp_path, allocator=allocator), digits(rows))
    assert str(caught.value) == (
        f"train_dataset: {rows} rows cannot fill a step of B = 4 prompts; add rows, or lower "
        "per_device_train_batch_size, steps_per_generation or gradient_accumulation_steps"
    )


def test_data_that_fill_one_step_train(model: str, tmp_path: Path) -> None:
    config = rollwise(tmp_path, num_train_epochs=1, max_steps=-1)
    assert train(RollwiseGRPOTrainer, config, model, train_dataset=digits(4))["trainer"].state.global_step == 1


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("streamed", [False, True], ids=["rows", "stream"])
def test_a_column_the_trainer_needs_for_itself_is_refused(tmp_path: Path, name: str, streamed: bool) -> None:
    data: Any = digits().add_column(name, ["x"] * 24)
    data = data.to_iterable_dataset() if streamed else data
    with pytest.raises(RollwiseError) as caught:
        RollwiseGRPOTrainer("no model is loaded", has_answer, rollwise(tmp_path, prompt_id_column="answer"), data)
    assert str(caught.value) == f"train_dataset: a column may not be called {name!r}, the trainer uses it; rename it"


@pytest.mark.parametrize("data", [["1="], {"prompt": ["1="]}, digits], ids=["list", "dict", "function"])
def test_data_of_another_kind_are_refused(tmp_path: Path, data: Any) -> None:
    with pytest.raises(RollwiseError, match=r"^train_dataset: \w+ is not supported; use a datasets\.Dataset$"):
        RollwiseGRPOTrainer("no model is loaded", has_answer, rollwise(tmp_path), data)


@pytest.mark.parametrize("allocator", ["uniform", "adaroll"])
@pytest.mark.parametrize("streamed", [False, True], ids=["rows", "stream"])
def test_an_empty_prompt_is_refused(model: str, tmp_path: Path, allocator: str, streamed: bool) -> None:
    rows = Dataset.from_dict({"prompt": ["1=", "2=", "", "3="], "answer": list("0123")})
    data = rows.to_iterable_dataset() if streamed else rows
    config = rollwise(tmp_path, prompt_id_column="answer", allocator=allocator)
    with pytest.raises(RollwiseError, match=r"^train_dataset: an empty prompt gives this tokenizer no token; "):
        train(RollwiseGRPOTrainer, config, model, train_dataset=data)
    assert not (tmp_path / "rollwise").exists()
