"""The size of each rollout's own gradient, which GVM (arXiv 2505.02391) shares rollouts by.

    |d log pi(y | x) / dW|^2 = sum_tu (r_t . r_u) (h_t . h_u),     r_t = (1[y_t] - softmax(z_t / tau)) / tau

W the output layer, h_t the hidden state that token t is drawn from, z_t = W h_t. Exact, and without a backward pass: the
gradient itself, as large as W for every rollout, is never made. The authors take the embedding parameters, which are the
same matrix in models that tie the two; the part that comes in through the inputs is left out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rollwise.types import RollwiseError


def output_layer(model: Any) -> tuple[nn.Module, nn.Module]:
    """The part of a causal language model that gives hidden states, and the layer that makes logits of them.

    Raises:
        RollwiseError: a model that has no such layer.
    """
    whole = model.get_base_model() if hasattr(model, "get_base_model") else model
    head = whole.get_output_embeddings() if hasattr(whole, "get_output_embeddings") else None
    if head is None or whole.base_model is whole:
        raise RollwiseError("allocator: gvm needs a model with an output layer of its own; use allocator='gvm_equal'")
    return whole.base_model, head


@torch.no_grad()
def gradient_norms(model: Any, part: Mapping[str, Tensor], temperature: float, batch: int) -> Tensor:
    """(n,) norms of the rollouts in `part` (prompt and completion ids and masks), `batch` at a time.

    Tokens of tools are not the model's and count for nothing.
    """
    backbone, head = output_layer(model)
    ids = torch.cat([part["prompt_ids"], part["completion_ids"]], dim=1)
    seen = torch.cat([part["prompt_mask"], part["completion_mask"]], dim=1)
    counted = part["completion_mask"] * part.get("tool_mask", 1)
    first, training = part["prompt_ids"].size(1), model.training
    norms: list[Tensor] = []
    model.eval()  # dropout would add noise of its own
    try:
        for start in range(0, len(ids), batch):
            chosen = slice(start, start + batch)
            made = backbone(input_ids=ids[chosen], attention_mask=seen[chosen], use_cache=False)
            states = made.last_hidden_state[:, first - 1 : -1]
            rows = zip(states, part["completion_ids"][chosen], counted[chosen].bool(), strict=True)
            norms += [row_norm(head, row[mask], tokens[mask], temperature) for row, tokens, mask in rows]
    finally:
        model.train(training)
    return torch.stack(norms)


def row_norm(head: nn.Module, states: Tensor, tokens: Tensor, temperature: float) -> Tensor:
    """The norm of one rollout with hidden states (T, d) and tokens (T,)."""
    residual = -(head(states).float() / temperature).softmax(-1)
    residual[torch.arange(len(tokens), device=tokens.device), tokens] += 1.0
    states = states.float()
    squared = ((residual @ residual.T) * (states @ states.T)).double().sum()
    return squared.clamp(min=0.0).sqrt() / temperature
