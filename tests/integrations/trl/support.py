"""A real, tiny setting for the trainer tests: a two-layer model, a character tokenizer, digit prompts, recorded text."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    TrainerCallback,
)
from trl import GRPOConfig, GRPOTrainer

from rollwise.integrations.trl import RollwiseGRPOConfig, RollwiseGRPOTrainer

CHARACTERS = "0123456789+-*=. abcdefghijklmnopqrstuvwxyz"


def tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {token: index for index, token in enumerate(["<pad>", "<eos>", *CHARACTERS])}
    built = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    built.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    built.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=built, pad_token="<pad>", eos_token="<eos>")


def save_model(folder: Path, seed: int = 0, **changes: Any) -> str:
    """A random two-layer Qwen2 of 30,000 parameters, as a folder that TRL loads by name; `changes` to its configuration."""
    torch.manual_seed(seed)
    shape: dict[str, Any] = {
        "vocab_size": len(CHARACTERS) + 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": None,
        "tie_word_embeddings": True,
    }
    config = Qwen2Config(**shape | changes)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


def digits(rows: int = 24) -> Dataset:
    """Prompts of several lengths; `answer` is a digit."""
    return Dataset.from_dict(
        {"prompt": [f"{'1+' * (i % 4)}{i}=" for i in range(rows)], "answer": [str(i % 10) for i in range(rows)]}
    )


def has_answer(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """1 where the answer's digit occurs anywhere in the completion."""
    return [float(digit in text) for text, digit in zip(completions, answer, strict=True)]


def brevity(completions: list[str], **_: Any) -> list[float]:
    """A shaped reward: shorter is better."""
    return [1.0 / (1 + len(text)) for text in completions]


def parity(text: str) -> str | None:
    """An answer of which there are two, by the first character; none for some, and for no text."""
    first = ord(text[:1] or "2")
    return None if first % 5 == 0 else ("even", "odd")[first % 2]


def settings(folder: Path, **changes: Any) -> dict[str, Any]:
    """Arguments of a config: 4 prompts x 4 rollouts in one block, one optimizer step each."""
    return {
        "output_dir": str(folder),
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 2,
        "num_generations": 4,
        "max_completion_length": 6,
        "max_steps": 2,
        "learning_rate": 1e-3,
        "logging_steps": 1,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "seed": 7,
        **changes,
    }


def save_absolute_model(folder: Path) -> str:
    """A random two-layer GPT-2: learned absolute positions, so a score depends on how far its prompt is padded."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(CHARACTERS) + 2,
        n_positions=128,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        initializer_range=0.5,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


class Gradients(TrainerCallback):
    """Keeps a copy of the gradients before every optimizer step."""

    def __init__(self) -> None:
        self.steps: list[list[torch.Tensor]] = []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        self.steps.append([p.grad.detach().clone() for p in model.parameters() if p.grad is not None])


class Recorded:
    """Completions fixed in advance: draw k of a prompt is always the same text, whoever generates it and when."""

    def __init__(self, eos: int = 1, pad: int = 0) -> None:
        self.eos = eos

    def text(self, prompt: tuple[int, ...], draw: int) -> list[int]:
        rng = np.random.default_rng([draw, *prompt])
        length = int(rng.integers(1, 6))
        tokens = [int(token) for token in rng.integers(2, 14, size=length)]
        return [*tokens, self.eos] if length < 5 else tokens + [3]


class RecordedStock(GRPOTrainer):
    """Stock trainer whose generation is recorded: copies of a prompt are consecutive rows of one process."""

    def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **kwargs: Any) -> Any:
        recorded, seen = Recorded(), {}
        out = []
        for prompt in prompt_ids:
            key = tuple(prompt)
            out.append(recorded.text(key, seen.setdefault(key, 0)))
            seen[key] += 1
        return out, None


class RecordedRollwise(RollwiseGRPOTrainer):
    """Rollwise trainer with the same recording; draws are numbered in the step's order of issue."""

    calls: list[int]

    def _share(self, wave: Any) -> Any:
        mine = super()._share(wave)
        self._draws = getattr(self, "_draws", {}) if wave.index else {}
        numbered = []
        for rollout in wave.rollouts:
            numbered.append(self._draws.get(rollout.prompt_id, 0))
            self._draws[rollout.prompt_id] = numbered[-1] + 1
        self._mine = [numbered[k] for k in mine]
        return mine

    def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **kwargs: Any) -> Any:
        recorded = Recorded()
        self.calls = [*getattr(self, "calls", []), len(prompt_ids)]
        return [recorded.text(tuple(p), draw) for p, draw in zip(prompt_ids, self._mine, strict=True)], None


def train(trainer_class: type, config: Any, model: str, rewards: Any = None, **kwargs: Any) -> dict[str, Any]:
    """Train and return losses, gradients of every optimizer step, final parameters and the trainer."""
    gradients = Gradients()
    resume = kwargs.pop("resume", None)
    dataset = kwargs.pop("train_dataset", None)
    trainer = trainer_class(
        model=model,
        reward_funcs=rewards or has_answer,
        args=config,
        train_dataset=dataset if dataset is not None else digits(),
        callbacks=[gradients],
        **kwargs,
    )
    trainer.train(resume_from_checkpoint=resume)
    return {
        "losses": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
        "history": [entry for entry in trainer.state.log_history if "loss" in entry],
        "gradients": gradients.steps,
        "parameters": [p.detach().clone() for p in trainer.model.parameters()],
        "trainer": trainer,
    }


def same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def distance(left: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    return max(float((a - b).abs().max()) for a, b in zip(left, right, strict=True))


def stock(folder: Path, **changes: Any) -> GRPOConfig:
    return GRPOConfig(**settings(folder, **changes))


def rollwise(folder: Path, **changes: Any) -> RollwiseGRPOConfig:
    return RollwiseGRPOConfig(**settings(folder, **{"allocator": "adaroll", **changes}))


flatten = itertools.chain.from_iterable
