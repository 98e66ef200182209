"""A server that speaks the OpenAI protocol: completions by HTTP, several requests at a time."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import Future
from http.client import HTTPException
from queue import SimpleQueue
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from rollwise.tasks.generation import Completion, Prompt, Sampling
from rollwise.types import RollwiseError

WAITS = (0.5, 1.0, 2.0, 4.0)
"""Seconds before a request that failed is sent again."""


class Endpoint:
    """A server that speaks the OpenAI protocol (vLLM, SGLang, llama.cpp, ...), several requests at a time.

    The key is read from the environment variable OPENAI_API_KEY.
    """

    def __init__(
        self,
        address: str,
        model: str,
        *,
        concurrency: int = 16,
        timeout: float = 600.0,
        waits: Sequence[float] = WAITS,
    ) -> None:
        """`address` up to and with /v1; a server may be silent for `timeout` seconds, and is asked again after `waits`.

        Raises:
            RollwiseError: an address that is none, or that nothing answers at.
        """
        if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).netloc:
            raise RollwiseError(f"endpoint: {address!r} is no address; give http://host:port/v1")
        self.address, self.model, self.timeout, self._waits = address.rstrip("/"), model, timeout, tuple(waits)
        self._check()
        self._queue: SimpleQueue[tuple[Future[Completion], Prompt, int, Sampling] | None] = SimpleQueue()
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(max(1, concurrency))]
        for thread in self._threads:  # as daemons: one that waits for a silent server keeps no program alive
            thread.start()

    def complete(self, prompts: Sequence[Prompt], sampling: Sampling, seeds: Sequence[int]) -> list[Completion]:
        """One completion per prompt, each request with its own seed.

        Raises:
            RollwiseError: the first request that failed for good.
        """
        jobs = [(Future[Completion](), prompt, seed, sampling) for prompt, seed in zip(prompts, seeds, strict=True)]
        for job in jobs:
            self._queue.put(job)
        try:
            return [job[0].result() for job in jobs]
        finally:
            for job in jobs:
                job[0].cancel()

    def close(self) -> None:
        """End the threads, each after the request it is waiting for."""
        for _ in self._threads:
            self._queue.put(None)

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            future, prompt, seed, sampling = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._complete(prompt, seed, sampling))
                # whatever it is, the thread that waits for it is the one to say so
                except BaseException as error:
                    future.set_exception(error)

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
        for wait in (*self._waits, None):
            try:
                with urllib.request.urlopen(self._request(path, body), timeout=self.timeout) as reply:
                    text = reply.read()
                return read_answer(text)
            except urllib.error.HTTPError as error:
                reason = f"status {error.code}: {error.read(300).decode(errors='replace').strip()}"
                if error.code != 429 and error.code < 500:
                    break
            except (OSError, HTTPException, ValueError) as error:
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
        except (OSError, HTTPException) as error:
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


def read_answer(text: bytes) -> dict[str, Any]:
    """The object that a reply is.

    Raises:
        ValueError: it is none, and how it begins.
    """
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ValueError(f"the answer is no JSON object but {text[:80].decode(errors='replace')!r}")
    return answer
