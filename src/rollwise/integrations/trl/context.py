"""Prompts longer than what a model was made to read: models with relative positions take them and answer nonsense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollwise.integrations.trl.embeddings import text_of

TRIED = 4
"""Prompts of the most characters, of which the one of most tokens is looked for."""


def long_prompt_warning(prompts: Sequence[Any], tokenizer: Any, config: Any, completion: int) -> list[str]:
    """One line where the longest prompt and `completion` tokens after it are more than the model's context, else none."""
    window = getattr(config.get_text_config(), "max_position_embeddings", None)
    if not window or not len(prompts):
        return []
    lengths = [len(text_of(prompt)) for prompt in prompts]
    longest = sorted(range(len(prompts)), key=lambda row: lengths[row])[-TRIED:]
    tokens = {row: len(tokenizer(text_of(prompts[row]))["input_ids"]) for row in longest}
    row = max(tokens, key=lambda place: (tokens[place], -place))
    left = window - tokens[row]
    if completion <= left:
        return []
    if left > 0:
        return [
            f"max_completion_length: {completion:,} after the {tokens[row]:,} tokens of row {row}'s prompt are more than "
            f"the {window:,} this model was made to read; give at most {left:,}"
        ]
    return [
        f"train_dataset: row {row}: a prompt of {tokens[row]:,} tokens leaves nothing of the {window:,} this model was "
        "made to read; shorten it or leave it out"
    ]
