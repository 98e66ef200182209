"""Merging the tensors of several waves into the one block the trainer would have made."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import pad

PAD_TOKEN = -1.0
"""Stands for the tokenizer's pad token in the tables below."""

LEFT: dict[str, float] = {"prompt_ids": PAD_TOKEN, "prompt_mask": 0}
RIGHT: dict[str, float] = {
    "completion_ids": PAD_TOKEN,
    "completion_mask": 0,
    "tool_mask": 1,
    "old_per_token_logps": 0.0,
    "ref_per_token_logps": 0.0,
    "sampling_per_token_logps": 0.0,
    "importance_sampling_ratio": 1.0,
}
"""Fields padded at the start or the end, with what."""


def merge_waves(parts: list[dict[str, Any]], order: torch.Tensor, pad_token_id: int) -> dict[str, Any]:
    """One block out of the waves' outputs.

    Args:
        parts: what `_generate_and_score_completions` returned for each wave, k_w local rows each.
        order: (sum k_w,) permutation to apply to the concatenated rows.
        pad_token_id: token that pads ids.

    Prompts are padded on the left and everything about completions on the right, to the widest wave; token counts add up.

    Raises:
        KeyError: for a tensor whose padding is unknown, so that nothing is merged wrongly in silence.
    """
    merged: dict[str, Any] = {}
    for key, first in parts[0].items():
        values = [part[key] for part in parts]
        if first.ndim == 0:
            merged[key] = torch.stack(values).sum(0)
        elif first.ndim == 1:
            merged[key] = torch.cat(values)[order]
        else:
            merged[key] = _pad_to_widest(key, values, pad_token_id)[order]
    return merged


def _pad_to_widest(key: str, values: list[torch.Tensor], pad_token_id: int) -> torch.Tensor:
    fill = LEFT[key] if key in LEFT else RIGHT[key]
    number = pad_token_id if fill == PAD_TOKEN else fill
    widest = max(value.size(1) for value in values)
    gaps = [widest - value.size(1) for value in values]
    return torch.cat(
        [
            pad(value, (gap, 0) if key in LEFT else (0, gap), value=number) if gap else value
            for value, gap in zip(values, gaps, strict=True)
        ]
    )
