"""Gradient norms of single completions, against one backward pass each."""

from __future__ import annotations

import pytest
import torch

from rollwise.lab.gradients import embedding_norms
from rollwise.lab.model import TinyLM, get_size


def test_norms_are_those_of_a_backward_pass_for_each_completion() -> None:
    torch.manual_seed(0)
    model = TinyLM(get_size("tiny"), vocabulary=9, length=9)
    prompts = torch.randint(2, 9, (4, 5))
    made = model.generate(model.prefill(prompts), torch.tensor([2, 0, 1, 2]), torch.rand(5, 4))
    rows = torch.tensor([0, 0, 2, 3, 3])
    found = embedding_norms(model, prompts[rows], made)
    for place, row in enumerate(rows):
        model.zero_grad()
        tokens = made.tokens[place : place + 1, : int(made.lengths[place])]
        model.logprobs(prompts[row][None], tokens, torch.tensor([0])).sum().backward()
        assert found[place] == pytest.approx(float(model.embed.weight.grad.norm()), rel=1e-4)
    assert len(found) == 5
