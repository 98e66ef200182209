"""Completions of prompts, and a model in this process that makes them; `endpoint` has one behind an address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Prompt = str | list[dict[str, str]]


@dataclass(frozen=True)
class Sampling:
    """How completions are drawn; `temperature` 0 is greedy. Text after the first of `stop` is cut off."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 512
    stop: tuple[str, ...] = ()

    def cut(self, text: str) -> str:
        """The text up to the first stop."""
        ends = [place for stop in self.stop if (place := text.find(stop)) >= 0]
        return text[: min(ends)] if ends else text


@dataclass(frozen=True)
class Completion:
    """A text, its number of tokens, and whether the model ended it (or a limit did)."""

    text: str
    tokens: int
    ended: bool


class Generator(Protocol):
    """What completes a batch of prompts; `seeds` (one per prompt) make sampling repeatable, as far as the model can."""

    def complete(self, prompts: Sequence[Prompt], sampling: Sampling, seeds: Sequence[int]) -> list[Completion]:
        """One completion per prompt, in order."""
        ...


class LocalModel:
    """A transformers model; prompts of a batch are padded on the left."""

    def __init__(self, name: str, *, gguf_file: str | None = None, dtype: str = "auto") -> None:
        """Load on the GPU where there is one.

        Raises:
            RollwiseError: as `load_model_and_tokenizer`.
        """
        import torch
        from transformers.utils import logging

        from rollwise.tasks.models import load_model_and_tokenizer

        logging.disable_progress_bar()  # it would break up the lines of an evaluation
        model, self.tokenizer = load_model_and_tokenizer(name, gguf_file=gguf_file, dtype=dtype)
        self.model: Any = model.to("cuda" if torch.cuda.is_available() else "cpu").eval()

    def complete(self, prompts: Sequence[Prompt], sampling: Sampling, seeds: Sequence[int]) -> list[Completion]:
        """One completion per prompt; the batch is drawn from the first seed."""
        import torch

        texts = [
            prompt
            if isinstance(prompt, str)
            else self.tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
            for prompt in prompts
        ]
        special = isinstance(prompts[0], str)  # a chat template writes them itself
        encoded = self.tokenizer(
            texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=special
        )
        given = {key: encoded[key].to(self.model.device) for key in ("input_ids", "attention_mask")}
        greedy = sampling.temperature == 0
        choice = (
            {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
            if greedy
            else {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
        )
        with torch.random.fork_rng(), torch.inference_mode():
            torch.manual_seed(seeds[0])
            made = self.model.generate(
                **given, **choice, max_new_tokens=sampling.max_tokens, pad_token_id=self.tokenizer.pad_token_id
            )
        ends = self.model.generation_config.eos_token_id
        ends = set(ends if isinstance(ends, list) else [ends])
        return [self._read(row, ends, sampling) for row in made[:, given["input_ids"].shape[1] :].tolist()]

    def _read(self, row: list[int], ends: set[int], sampling: Sampling) -> Completion:
        length = next((place for place, token in enumerate(row) if token in ends), None)
        kept = row if length is None else row[:length]
        text = self.tokenizer.decode(kept, skip_special_tokens=True)
        cut = sampling.cut(text)
        return Completion(cut, len(kept), length is not None or len(cut) < len(text))
