"""A prompt that the model cannot read as a whole is warned of in one line, and trained on all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from transformers import Qwen2Config

from rollwise.integrations.trl import RollwiseGRPOTrainer
from rollwise.integrations.trl.context import long_prompt_warning
from tests.integrations.trl.support import rollwise, tokenizer

CONFIG = Qwen2Config(max_position_embeddings=128)


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (122, []),
        (
            123,
            [
                "max_completion_length: 6 after the 123 tokens of row 1's prompt are more than the 128 this model was "
                "made to read; give at most 5"
            ],
        ),
        (
            5000,
            [
                "train_dataset: row 1: a prompt of 5,000 tokens leaves nothing of the 128 this model was made to read; "
                "shorten it or leave it out"
            ],
        ),
    ],
    ids=["fits", "leaves little", "too long"],
)
def test_the_prompt_and_what_follows_it_must_fit(length: int, said: list[str]) -> None:
    assert long_prompt_warning(["1=", "1" * length, "22="], tokenizer(), CONFIG, 6) == said


def test_conversations_are_read_and_models_without_a_limit_are_not_warned_of() -> None:
    talk: Any = [[{"role": "user", "content": "1" * 200}]]
    assert "row 0: a prompt of 200 tokens" in long_prompt_warning(talk, tokenizer(), CONFIG, 6)[0]
    del (unlimited := Qwen2Config()).max_position_embeddings
    assert long_prompt_warning(talk, tokenizer(), unlimited, 6) == []


def test_the_start_says_it_once(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = Dataset.from_dict({"prompt": ["1=", "2=", "3=", "1" * 300]})
    config = rollwise(tmp_path, max_steps=1)
    trainer = RollwiseGRPOTrainer(model, lambda completions, **_: [1.0] * len(completions), config, rows)
    lines = [line for line in capsys.readouterr().out.splitlines() if "warning" in line]
    assert len(lines) == 1 and "row 3: a prompt of 300 tokens" in lines[0]
    assert trainer.notes and lines[0].endswith(trainer.notes[0])
