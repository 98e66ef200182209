"""Accuracy of a model: counted per completion, repeatable, and without a trace on the trainer's randomness."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rollwise.cli.config import RunConfig
from rollwise.cli.evaluation import call, complete, evaluate
from rollwise.cli.preflight import Inputs, load_inputs
from rollwise.tasks.models import load_model_and_tokenizer

PLUS_CHAINS = {"source": "chains", "split": "test", "limit": 12}


@pytest.fixture(scope="module")
def loaded() -> Iterator[tuple[PreTrainedModel, PreTrainedTokenizerBase]]:
    yield load_model_and_tokenizer("embedded")


@pytest.fixture
def config() -> RunConfig:
    settings = {"data": PLUS_CHAINS, "eval_data": PLUS_CHAINS, "max_completion_length": 12}
    return RunConfig.model_validate(settings | {"evaluation": {"samples": 3, "batch": 5}})


def holder(loaded: Any) -> Any:
    return SimpleNamespace(model=loaded[0], processing_class=loaded[1])


def test_greedy_accuracy_is_the_share_of_exact_answers_whatever_the_batch(loaded: Any, config: RunConfig) -> None:
    inputs = load_inputs(config)
    result = evaluate(holder(loaded), inputs, config)
    rows = inputs.eval_rows
    assert rows is not None
    alone = [complete(holder(loaded), [row["prompt"]], config, sample=False)[0] == row["answer"] for row in rows]
    assert 0 < sum(alone) < 12
    assert result["greedy"] == pytest.approx(sum(alone) / 12)
    assert type(result["prompts"]) is int and result["prompts"] == 12 and result["unknown"] == 0


def test_measuring_twice_gives_the_same_and_leaves_the_generator_alone(loaded: Any, config: RunConfig) -> None:
    inputs = load_inputs(config)
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = evaluate(holder(loaded), inputs, config)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(6)
    assert evaluate(holder(loaded), inputs, config) == first


def test_what_cannot_be_judged_is_left_out_and_counted(loaded: Any, config: RunConfig) -> None:
    def judge(completions: list[str], answer: list[str]) -> list[float | None]:
        return [1.0 if text.startswith("2") else None for text in answer]

    inputs = load_inputs(config)
    judged = Inputs(inputs.rows, inputs.eval_rows, [judge], None, inputs.model, None)
    result = evaluate(holder(loaded), judged, config)
    rows: Any = inputs.eval_rows
    share = sum(not text.startswith("2") for text in rows["answer"]) / len(rows)
    assert result["greedy"] == 1.0
    assert result["unknown"] == pytest.approx(share)


def test_a_score_gets_only_the_columns_it_takes_and_may_be_a_coroutine() -> None:
    async def later(completions: list[str]) -> list[float | None]:
        return [None if not text else 1.0 for text in completions]

    scores = call(later, completions=["a", ""], prompts=["x", "y"], answer=["1", "2"])
    assert scores[0] == 1.0 and math.isnan(scores[1])
