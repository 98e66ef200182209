"""The size of each completion's own gradient, which GVM (arXiv 2505.02391) shares rollouts by."""

from __future__ import annotations

import torch
from torch import Tensor

from rollwise.lab.model import Completions, TinyLM
from rollwise.types import FloatArray


def embedding_norms(model: TinyLM, prompts: Tensor, made: Completions) -> FloatArray:
    """(n,) Euclidean norm of d log pi(completion | prompt) / d token embeddings, after prompts [n, P].

    One pass for all: the gradient at each place of a row is taken, and those of the same word in a row are added up.
    """
    whole, first = torch.cat([prompts, made.tokens], 1), prompts.shape[1]
    found: list[Tensor] = []
    hook = model.embed.register_forward_hook(lambda module, inputs, output: found.append(output))
    try:
        with torch.enable_grad():
            logits = model(whole)[:, first - 1 : -1]
    finally:
        hook.remove()
    words = logits.log_softmax(-1).gather(2, made.tokens[:, :, None])[:, :, 0]
    written = torch.arange(made.tokens.shape[1]) < made.lengths[:, None]
    (by_place,) = torch.autograd.grad((words * written).sum(), found[0])
    rows, vocabulary = len(whole), model.embed.num_embeddings
    by_word = torch.zeros(rows * vocabulary, by_place.shape[2])
    cells = torch.arange(rows)[:, None] * vocabulary + whole
    by_word.index_add_(0, cells.reshape(-1), by_place.reshape(-1, by_place.shape[2]))
    return by_word.view(rows, -1).double().norm(dim=1).numpy()
