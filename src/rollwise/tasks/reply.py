"""What a server that speaks the OpenAI protocol answers: a completion, or how long to wait before it is asked again."""

from __future__ import annotations

import json
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

from rollwise.tasks.generation import Completion

LONGEST_WAIT = 300.0
"""Seconds that a server may ask for at most before it is asked again."""

MOST_TOKENS = 1 << 53


def read_reply(text: bytes, chat: bool) -> Completion:
    """The completion in a reply; a content in parts is its text parts, a number of tokens that is none counts as 0.

    Raises:
        ValueError: there is none, and what there is instead.
    """
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise ValueError(f"the answer is no JSON object but {text[:80].decode(errors='replace')!r}")
    try:
        choice = answer["choices"][0]
        content = choice["message"]["content"] if chat else choice["text"]
        return Completion(read_content(content), read_tokens(answer), choice.get("finish_reason") != "length")
    except (LookupError, TypeError, AttributeError):
        shown = str(answer.get("error") or answer)[:100]
        raise ValueError(f"no completion in the answer {shown}; is it OpenAI-compatible?") from None


def read_content(content: Any) -> str:
    """The text of a message: itself, its text parts, or nothing.

    Raises:
        TypeError: it is none of these.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError
    return "".join(part if isinstance(part, str) else str(part.get("text") or "") for part in content)


def read_tokens(answer: dict[str, Any]) -> int:
    """The number of tokens that the reply says it took, 0 where it says none."""
    usage = answer.get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return int(count) if isinstance(count, (int, float)) and 0 <= count <= MOST_TOKENS else 0


def asked_wait(given: str | None) -> float:
    """Seconds that a `Retry-After` header asks for, as a number or a date; 0 for none, LONGEST_WAIT at most."""
    if given is None:
        return 0.0
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(given).timestamp() - time()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return min(max(0.0, seconds), LONGEST_WAIT)  # in this order NaN is 0
