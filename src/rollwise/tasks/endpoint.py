"""A server that speaks the OpenAI protocol: completions by HTTP, several requests at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from http.client import HTTPException
from queue import SimpleQueue
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request

from rollwise.tasks.exchange import Answer, describe, send
from rollwise.tasks.generation import Completion, Prompt, Sampling
from rollwise.tasks.reply import asked_wait, read_reply
from rollwise.types import RollwiseError

WAITS = (0.5, 2.0, 8.0, 30.0)
"""Seconds before a request that failed is sent again, where the server asks for no more."""

LATER = (408, 425, 429)
"""Statuses below 500 that say to ask again: the server's patience was over, too early, too many requests."""

CHECK = 10.0
"""Seconds that a server may take to say that it is there."""


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
        """`address` up to and with /v1; a request may take `timeout` seconds in all, and is sent again after `waits`.

        Raises:
            RollwiseError: an address or a key that is none, or an address that nothing answers at.
        """
        if not is_address(address):
            raise RollwiseError(f"endpoint: {address!r} is no address; give http://host:port/v1")
        self._key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise RollwiseError("OPENAI_API_KEY: it holds characters that no key has; set it anew")
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
        made = self._ask("/chat/completions" if chat else "/completions", body)
        return replace(made, text=sampling.cut(made.text))

    def _ask(self, path: str, body: dict[str, Any]) -> Completion:
        """The answer to one request; waits and asks again where the server is busy, gone, or answers nonsense."""
        reason = ""
        for wait in (*self._waits, None):
            asked = None
            try:
                answer = self._send(path, body, self.timeout)
                if answer.status < 300:
                    return read_reply(answer.text, chat="messages" in body)
                reason = f"status {answer.status}: {answer.text.decode(errors='replace').strip()}"
                if answer.status < 500 and answer.status not in LATER:
                    break
                asked = answer.retry_after
            except (OSError, HTTPException, ValueError) as error:
                reason = describe(error, self.timeout)
            if wait is not None:
                sleep(max(wait, asked_wait(asked)))
        raise RollwiseError(
            f"endpoint: {self.address}{path} failed ({' '.join(reason.split())[:200]}); finished work is kept"
        )

    def _check(self) -> None:
        try:
            status = self._send("/models", None, CHECK).status
        except (OSError, HTTPException, ValueError) as error:
            raise RollwiseError(
                f"endpoint: nothing answers at {self.address} ({describe(error, CHECK)}); is the server up?"
            ) from error
        if status in (401, 403):
            raise RollwiseError(f"endpoint: {self.address} refuses the key (status {status}); set OPENAI_API_KEY")

    def _send(self, path: str, body: dict[str, Any] | None, limit: float) -> Answer:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        data = None if body is None else json.dumps(body).encode()
        return send(Request(self.address + path, data=data, headers=headers), limit)


def is_address(given: str) -> bool:
    """Whether it says how to reach a server: http or https, a host, and a port that is one if any."""
    try:
        parts = urlsplit(given)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
