"""Gradient norms of rollouts: what automatic differentiation gives, per rollout, of the model that generated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from rollwise.allocators.gvm import Gvm
from rollwise.integrations.trl import RollwiseGRPOConfig, RollwiseGRPOTrainer
from rollwise.integrations.trl.gradients import gradient_norms, output_layer
from rollwise.types import IntArray, RollwiseError, StepRecord, StepView

from .support import digits, save_model, settings, tokenizer


@pytest.fixture(scope="module")
def untied(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose output layer is a matrix of its own, so that its gradient can be read off."""
    return save_model(tmp_path_factory.mktemp("untied"), seed=3, tie_word_embeddings=False, initializer_range=0.3)


def by_autograd(model: Any, part: dict[str, torch.Tensor], row: int, temperature: float) -> float:
    """|d log pi / d lm_head| of one row without any padding."""
    prompt = part["prompt_ids"][row][part["prompt_mask"][row].bool()]
    said = part["completion_ids"][row][part["completion_mask"][row].bool()]
    model.zero_grad()
    logits = model(torch.cat([prompt, said])[None]).logits[0, len(prompt) - 1 : -1] / temperature
    logits.log_softmax(-1).gather(1, said[:, None]).sum().backward()
    return float(model.lm_head.weight.grad.norm())


@pytest.mark.parametrize("batch", [1, 3])
def test_norms_are_those_of_automatic_differentiation(untied: str, batch: int) -> None:
    model = AutoModelForCausalLM.from_pretrained(untied).eval()
    generator = torch.Generator().manual_seed(0)
    prompts, lengths = [2, 5, 4], [6, 1, 3]
    part = {
        "prompt_ids": torch.randint(2, 40, (3, 5), generator=generator),
        "prompt_mask": torch.tensor([[0] * (5 - n) + [1] * n for n in prompts]),
        "completion_ids": torch.randint(2, 40, (3, 6), generator=generator),
        "completion_mask": torch.tensor([[1] * n + [0] * (6 - n) for n in lengths]),
    }
    found = gradient_norms(model, part, 0.7, batch)
    assert found.tolist() == pytest.approx([by_autograd(model, part, row, 0.7) for row in range(3)], rel=1e-4)


class Watched(RollwiseGRPOTrainer):
    """Keeps what each wave returned."""

    def _run_wave(self, *given: Any) -> Any:
        part = super()._run_wave(*given)
        self.parts = [*getattr(self, "parts", []), part]
        return part


class Seeing(Gvm):
    """GVM that keeps the views it decided on."""

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        self.views = [*getattr(self, "views", []), view]
        return super().next_wave(view, rng)


def test_the_trainer_reports_norms_of_the_first_stage_and_gvm_divides_by_them(
    untied: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def luck(completions: list[str], **_: Any) -> list[float]:
        return [float(sum(map(ord, text)) % 3 != 0) for text in completions]

    rule = Seeing()
    args = RollwiseGRPOConfig(**settings(tmp_path, max_steps=1, temperature=1.3))
    run = Watched(untied, luck, args, digits(), processing_class=tokenizer(), allocator=rule)
    assert "one more forward pass over all waves but the last, for gradient norms" in capsys.readouterr().out
    run.train()
    record: StepRecord = run.last_record
    model, first = AutoModelForCausalLM.from_pretrained(untied), run.parts[0]
    told = [row.gradient_norm for row in record.rollouts if row.wave == 0]
    assert told == pytest.approx([by_autograd(model, first, row, 1.3) for row in range(len(told))], rel=1e-4)
    assert all(row.gradient_norm is None for row in record.rollouts if row.wave > 0), "no decision is left to make"
    view = rule.views[-1]
    assert view.gradient_norms == pytest.approx([np.mean(told[k : k + 2]) for k in (0, 2, 4, 6)])
    rates = view.successes / 2
    weights = np.where(rates > 0, view.gradient_norms / np.sqrt(rates + 1e-3 / np.maximum(rates, 1e-9)), 0)
    assert weights.any(), "no success in the first stage, so this run shows nothing"
    rest = record.counts - 2
    assert rest == pytest.approx(8 * weights / weights.sum(), abs=1)


def test_a_model_without_an_output_layer_is_refused() -> None:
    with pytest.raises(RollwiseError, match="allocator: gvm needs a model with an output layer of its own; use allo"):
        output_layer(torch.nn.Linear(2, 2))


def test_an_adapter_changes_what_the_layer_sees_and_not_which_layer_it_is(untied: str) -> None:
    peft = pytest.importorskip("peft", reason="needs rollwise[train]")
    plain = AutoModelForCausalLM.from_pretrained(untied)
    adapted = peft.get_peft_model(
        AutoModelForCausalLM.from_pretrained(untied),
        peft.LoraConfig(task_type="CAUSAL_LM", target_modules="all-linear"),
    )
    ids = torch.tensor([[3, 4, 5], [6, 7, 8]])
    part = {"prompt_ids": ids, "prompt_mask": torch.ones_like(ids)}
    part |= {"completion_ids": ids.flip(1), "completion_mask": torch.ones_like(ids)}
    before = gradient_norms(plain, part, 1.0, 2)
    assert gradient_norms(adapted, part, 1.0, 2).tolist() == pytest.approx(before.tolist(), rel=1e-5)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    assert (gradient_norms(adapted, part, 1.0, 2) - before).abs().min() > 1e-2
