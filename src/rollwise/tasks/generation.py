"""Completions of prompts, from a model in this process or behind an OpenAI-compatible address."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from rollwise.types import RollwiseError

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

    @property
    def has_template(self) -> bool:
        """Whether the tokenizer has a chat template."""
        return self.tokenizer.chat_template is not None

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


class Endpoint:
    """A server that speaks the OpenAI protocol (vLLM, SGLang, llama.cpp, ...), several requests at a time.

    The key is read from the environment variable OPENAI_API_KEY.
    """

    def __init__(self, address: str, model: str, *, concurrency: int = 16, timeout: float = 600.0) -> None:
        """`address` up to and with /v1.

        Raises:
            RollwiseError: an address that is none, or that nothing answers at.
        """
        if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).netloc:
            raise RollwiseError(f"endpoint: {address!r} is no address; give http://host:port/v1")
        self.address, self.model, self.timeout = address.rstrip("/"), model, timeout
        self._threads = ThreadPoolExecutor(max(1, concurrency), thread_name_prefix="endpoint")
        self._check()

    def complete(self, prompts: Sequence[Prompt], sampling: Sampling, seeds: Sequence[int]) -> list[Completion]:
        """One completion per prompt, each request with its own seed."""
        return list(self._threads.map(self._complete, prompts, seeds, [sampling] * len(prompts)))

    def close(self) -> None:
        """Forget requests that have not started."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _complete(self, prompt: Prompt, seed: int, sampling: Sampling) -> Completion:
        body: dict[str, Any] = {
            "model": self.model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "seed": seed,
        }
        if sampling.stop:
            body["stop"] = list(sampling.stop)[:4]  # the protocol takes four
        chat = not isinstance(prompt, str)
        body |= {"messages": prompt} if chat else {"prompt": prompt}
        answer = self._ask("/chat/completions" if chat else "/completions", body)
        try:
            choice = answer["choices"][0]
            text = (choice["message"]["content"] if chat else choice["text"]) or ""
            tokens = int((answer.get("usage") or {}).get("completion_tokens") or 0)
            return Completion(sampling.cut(text), tokens, choice.get("finish_reason") != "length")
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise RollwiseError(
                f"endpoint: {self.address} answered without choices ({str(answer)[:100]}); is it OpenAI-compatible?"
            ) from error

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request; waits and asks again where the server is busy, failing or gone for a moment."""
        reason = ""
        for wait in (0.5, 1.0, 2.0, 4.0, None):
            try:
                with urllib.request.urlopen(self._request(path, body), timeout=self.timeout) as reply:
                    return dict(json.loads(reply.read()))
            except urllib.error.HTTPError as error:
                reason = f"status {error.code}: {error.read(300).decode(errors='replace').strip()}"
                if error.code != 429 and error.code < 500:
                    break
            except (OSError, ValueError) as error:
                reason = str(getattr(error, "reason", error))
            if wait is not None:
                time.sleep(wait)
        raise RollwiseError(
            f"endpoint: {self.address}{path} failed ({' '.join(reason.split())[:200]}); finished work is kept"
        )

    def _check(self) -> None:
        try:
            urllib.request.urlopen(self._request("/models", None), timeout=10).close()
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                raise RollwiseError(
                    f"endpoint: {self.address} refuses the key (status {error.code}); set OPENAI_API_KEY"
                ) from error
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise RollwiseError(
                f"endpoint: nothing answers at {self.address} ({reason}); is the server up?"
            ) from error

    def _request(self, path: str, body: dict[str, Any] | None) -> urllib.request.Request:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.Request(self.address + path, data=data, headers=headers)
