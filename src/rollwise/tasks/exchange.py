"""One HTTP request and its answer, which may take so many seconds in all."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from http.client import HTTPResponse
from threading import Thread
from time import monotonic
from typing import NamedTuple, TypeVar
from urllib.error import HTTPError

MOST_BYTES = 1 << 26
"""Of an answer, which may have no end otherwise."""

T = TypeVar("T")


class Answer(NamedTuple):
    """Status, text (of an error its beginning) and the header `Retry-After`."""

    status: int
    text: bytes
    retry_after: str | None = None


def send(request: urllib.request.Request, limit: float) -> Answer:
    """The answer to a request, an error status too.

    Raises:
        OSError, HTTPException, ValueError: there is none, or it took longer than `limit` seconds (`describe` tells).
    """

    def work() -> Answer:
        until = monotonic() + limit
        try:
            with urllib.request.urlopen(request, timeout=limit) as reply:
                return Answer(reply.status, read_whole(reply, until))
        except HTTPError as error:
            with error:
                return Answer(error.code, error.read(300), error.headers.get("Retry-After"))

    return within(limit, work)


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` returns; it has a thread of its own, since a socket's time limit is for each piece that it receives.

    Raises:
        TimeoutError: it takes longer; its thread is left to itself.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="request", daemon=True).start()
    return future.result(seconds)


def read_whole(reply: HTTPResponse, until: float) -> bytes:
    """The body of a reply.

    Raises:
        TimeoutError: there is more to come at the time `until`.
        ValueError: it breaks off, or has no end.
    """
    text = bytearray()
    while piece := reply.read1(1 << 16):
        text += piece
        if monotonic() > until:
            raise TimeoutError
        if len(text) > MOST_BYTES:
            raise ValueError(f"the answer is longer than {MOST_BYTES} bytes")
    if reply.length:
        raise ValueError(f"the answer breaks off after {len(text)} bytes")
    return bytes(text)


def describe(error: Exception, limit: float) -> str:
    """What went wrong with a request that was to take `limit` seconds."""
    cause = getattr(error, "reason", error)
    return f"no whole answer within {limit:g} s" if isinstance(cause, TimeoutError) else str(cause)
