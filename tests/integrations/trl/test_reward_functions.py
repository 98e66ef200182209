"""Reward functions as users write them: what they may return, what they may touch, and how their faults read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rollwise.integrations.trl import RollwiseGRPOTrainer
from rollwise.types import Outcome, RollwiseError
from tests.integrations.trl.support import (
    RecordedRollwise,
    brevity,
    digits,
    has_answer,
    rollwise,
    same,
    tokenizer,
    train,
)


def test_a_penalty_on_length_trains_and_turns_no_success_into_a_failure(model: str, tmp_path: Path) -> None:
    from trl.rewards import get_soft_overlong_punishment

    penalty = get_soft_overlong_punishment(max_completion_len=6, soft_punish_cache=4)
    plain = train(RecordedRollwise, rollwise(tmp_path / "a", max_steps=1), model)["trainer"].last_record
    config = rollwise(tmp_path / "b", max_steps=1, outcome="has_answer")
    both = train(RecordedRollwise, config, model, [has_answer, penalty])["trainer"].last_record
    lowered = [row.reward for row in both.rollouts if row.outcome is Outcome.SUCCESS]
    assert min(lowered) == 0.0, "what is right and as long as can be earns nothing, and is a success"
    assert (both.counts.tolist(), both.successes.tolist()) == (plain.counts.tolist(), plain.successes.tolist())
    assert both.advantages.tolist() != plain.advantages.tolist()
    with pytest.raises(RollwiseError, match="^outcome: soft_overlong_punishment_reward lowers .*such as 'has_answer'"):
        train(RecordedRollwise, rollwise(tmp_path / "c", outcome_threshold=0.5), model, [has_answer, penalty])


class RecordedEvaluation(RecordedRollwise):
    """Completions are recorded in evaluation as well."""

    def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **kwargs: Any) -> Any:
        if not self.model.training:
            self._mine = list(range(len(prompt_ids)))
        return super()._generate_single_turn(prompt_ids, *rest, **kwargs)


@pytest.mark.parametrize(
    "changes",
    [{}, {"allocator": "uniform"}, {"multi_objective_aggregation": "normalize_then_sum"}],
    ids=["waves", "stock", "aggregated"],
)
def test_an_unknown_outcome_has_no_reward_whatever_other_functions_say(
    model: str, tmp_path: Path, changes: dict[str, Any]
) -> None:
    from trl.rewards import get_soft_overlong_punishment

    def halting(completions: list[str], answer: list[str], **_: Any) -> list[float | None]:
        right = has_answer(completions, answer)
        return [None if index % 2 else value for index, value in enumerate(right)]

    penalty = get_soft_overlong_punishment(max_completion_len=6, soft_punish_cache=5)
    config = rollwise(tmp_path, max_steps=1, outcome="halting", eval_strategy="steps", eval_steps=1, **changes)
    trainer = train(RecordedEvaluation, config, model, [halting, penalty], eval_dataset=digits(4))["trainer"]
    record = trainer.last_record
    unknown = np.array([row.outcome is Outcome.UNKNOWN for row in record.rollouts])
    assert 0 < unknown.sum() < len(unknown)
    assert record.successes.sum() > 0
    assert [row.reward is None for row in record.rollouts] == unknown.tolist()
    assert not record.advantages[unknown].any()
    assert record.advantages[~unknown].any()
    logged = trainer.state.log_history[0]
    assert logged["rollwise/unknown_share"] == unknown.mean()
    assert logged["reward"] == pytest.approx(
        np.mean([row.reward for row in record.rollouts if row.reward is not None])
    )
    evaluated = next(entry for entry in trainer.state.log_history if "eval_reward" in entry)
    parts = [evaluated[f"eval_rewards/{name}/mean"] for name in ("halting", "soft_overlong_punishment_reward")]
    assert evaluated["eval_reward"] == pytest.approx(sum(parts)), "means over the same rows: those that were judged"


@pytest.mark.parametrize(
    "form",
    [
        tuple,
        np.array,
        lambda values: np.array(values, dtype=np.float16),
        torch.tensor,
        lambda values: [torch.tensor(value) for value in values],
        lambda values: [bool(value) for value in values],
        lambda values: [np.int64(value) for value in values],
    ],
    ids=["tuple", "array", "half precision", "tensor", "list of tensors", "booleans", "numpy integers"],
)
def test_any_sequence_of_numbers_is_a_reward(model: str, tmp_path: Path, form: Any) -> None:
    def formed(completions: list[str], answer: list[str], **_: Any) -> Any:
        return form(has_answer(completions, answer))

    plain, ours = (
        train(RecordedRollwise, rollwise(tmp_path / name, max_steps=1), model, function)["trainer"].last_record
        for name, function in (("a", has_answer), ("b", formed))
    )
    assert ours.successes.sum() > 0
    assert ours.advantages.tolist() == plain.advantages.tolist()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda n: dict.fromkeys(range(n), 1.0), "returned dict; return a list of numbers or None"),
        (lambda n: set(range(n)), "returned set; return a list of numbers or None"),
        (lambda n: "1" * n, "returned str; return a list of numbers or None"),
        (lambda n: None, "returned NoneType; return a list of numbers or None"),
        (lambda n: np.float64(1.0), "returned float64; return a list of numbers or None"),
        (lambda n: (1.0 for _ in range(n)), "returned generator; return a list of numbers or None"),
        (lambda n: [10**400] * n, "returned inf; a reward is finite (below 3.4e+38), or None for unknown"),
        (lambda n: [1e39] * n, "returned 1e+39; a reward is finite (below 3.4e+38), or None for unknown"),
        (
            lambda n: torch.full((n,), -math.inf),
            "returned -inf; a reward is finite (below 3.4e+38), or None for unknown",
        ),
        (lambda n: np.ones((n, 2)), "returned [1.0, 1.0]; a reward is a number, or None for unknown"),
        (lambda n: [1j] * n, "returned 1j; a reward is a number, or None for unknown"),
        (lambda n: [{"score\n": 1.0}] * n, r"returned {'score\n': 1.0}; a reward is a number, or None for unknown"),
        (lambda n: _fail("first\n  second\r\nthird"), "raised ValueError: first second third"),
        (lambda n: _fail("x" * 1000), f"raised ValueError: {'x' * 197}..."),
    ],
    ids=lambda value: "" if callable(value) else value[:24],
)
def test_what_is_no_reward_is_named_in_one_line(model: str, tmp_path: Path, returned: Any, message: str) -> None:
    def faulty(completions: list[str], **_: Any) -> Any:
        return returned(len(completions))

    with pytest.raises(RollwiseError) as caught:
        train(RecordedRollwise, rollwise(tmp_path), model, faulty)
    assert str(caught.value) == f"reward function 'faulty' {message}"


def _fail(text: str) -> Any:
    raise ValueError(text)


def test_a_reward_function_that_changes_its_arguments_disturbs_nobody(model: str, tmp_path: Path) -> None:
    data = digits().map(lambda row: {"tags": [[row["answer"]]]})

    def vandal(
        completions: list[Any], prompts: list[Any], completion_ids: list[Any], answer: list[str], tags: Any, **_: Any
    ) -> list[float]:
        right = has_answer(completions, answer)
        for nested in (*tags, *(part for tag in tags for part in tag), *completion_ids):
            nested.clear()
        for column in (completions, prompts, completion_ids, answer, tags):
            column.clear()
        return right

    def witness(
        completions: list[Any], prompts: list[Any], completion_ids: list[Any], answer: list[str], tags: Any, **_: Any
    ) -> list[float]:
        assert len(completions) == len(prompts) == len(completion_ids) == len(answer) > 0
        assert all(completion_ids)
        assert tags == [[[digit]] for digit in answer]
        return has_answer(completions, answer)

    plain, ours = (
        train(RecordedRollwise, rollwise(tmp_path / name), model, rewards, train_dataset=data, outcome=witness)
        for name, rewards in (("a", [has_answer, has_answer]), ("b", [vandal, witness]))
    )
    assert same(ours["parameters"], plain["parameters"])


def test_a_reward_function_that_changes_messages_disturbs_nobody(model: str, tmp_path: Path) -> None:
    chat = tokenizer()
    chat.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    data = digits().map(lambda row: {"prompt": [{"role": "user", "content": row["prompt"]}]})

    def vandal(completions: list[Any], prompts: list[Any], answer: list[str], **_: Any) -> list[float]:
        right = has_answer([completion[0]["content"] for completion in completions], answer)
        for message in (*prompts, *completions):
            message[-1]["content"] = "gone"
            message.append({"role": "user", "content": "more"})
        return right

    def witness(completions: list[Any], prompts: list[Any], answer: list[str], **_: Any) -> list[float]:
        assert all(len(prompt) == 1 and prompt[0]["content"].endswith("=") for prompt in prompts)
        assert all(len(completion) == 1 for completion in completions)
        return has_answer([completion[0]["content"] for completion in completions], answer)

    config = rollwise(tmp_path)
    result = train(
        RollwiseGRPOTrainer,
        config,
        model,
        [vandal, witness],
        train_dataset=data,
        processing_class=chat,
        outcome=witness,
    )
    assert result["trainer"].state.global_step == 2


def test_an_outcome_may_be_asynchronous(model: str, tmp_path: Path) -> None:
    async def right(completions: list[str], answer: list[str], **_: Any) -> list[float]:
        return has_answer(completions, answer)

    async def broken(completions: list[str], **_: Any) -> list[float]:
        raise OSError("no\nroute")

    plain, ours = (
        train(RecordedRollwise, rollwise(tmp_path / name, max_steps=1), model, [has_answer, brevity], outcome=outcome)
        for name, outcome in (("a", has_answer), ("b", right))
    )
    assert ours["trainer"].last_record.counts.tolist() == plain["trainer"].last_record.counts.tolist()
    assert ours["trainer"].last_record.successes.sum() > 0
    with pytest.raises(RollwiseError, match=r"^reward function 'broken' raised OSError: no route$"):
        train(RecordedRollwise, rollwise(tmp_path / "c", max_steps=1), model, brevity, outcome=broken)


def test_an_outcome_gets_what_a_reward_function_gets(model: str, tmp_path: Path) -> None:
    def judge(
        completions: list[str], answer: list[str], log_metric: Any, trainer_state: Any, **rest: Any
    ) -> list[float]:
        assert {"prompts", "completion_ids", "log_extra"} <= set(rest)
        assert not any(name.startswith("rollwise") for name in rest)
        log_metric("judged", float(trainer_state.global_step))
        return has_answer(completions, answer)

    history = train(RecordedRollwise, rollwise(tmp_path), model, brevity, outcome=judge)["history"]
    assert [entry["judged"] for entry in history] == [0.0, 1.0]


def test_an_outcome_that_is_no_outcome_is_refused(model: str, tmp_path: Path) -> None:
    def half(completions: list[str], **_: Any) -> list[float]:
        return [0.5] * len(completions)

    with pytest.raises(
        RollwiseError, match=r"^outcome \(half\) returned 0\.5: an outcome is 0, 1, or None for unknown"
    ):
        train(RecordedRollwise, rollwise(tmp_path), model, brevity, outcome=half)


class Silent(RecordedRollwise):
    """Every other completion is empty, as an engine may return it that stops before the first token."""

    def _generate(self, *arguments: Any, **kwargs: Any) -> Any:
        made = super()._generate(*arguments, **kwargs)
        for tokens in made[1][1::2]:
            tokens.clear()
        return made


def test_an_empty_completion_is_a_rollout_like_any_other(model: str, tmp_path: Path) -> None:
    result = train(Silent, rollwise(tmp_path), model)
    record = result["trainer"].last_record
    assert 0 in [rollout.tokens for rollout in record.rollouts]
    assert record.counts.sum() == 16
    assert np.isfinite(result["losses"]).all()
    assert result["history"][0]["completions/min_length"] == 0
