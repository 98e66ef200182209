"""What is read in a server's answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from rollwise.tasks.generation import Completion
from rollwise.tasks.reply import LONGEST_WAIT, asked_wait, read_reply

CONTENTS: dict[str, tuple[Any, str]] = {
    "text": ("a", "a"),
    "null": (None, ""),
    "parts": ([{"type": "text", "text": "a"}, {"type": "image_url"}, "b", {"type": "text", "text": None}], "ab"),
}


@pytest.mark.parametrize(("content", "text"), CONTENTS.values(), ids=CONTENTS)
def test_a_content_is_text_parts_or_nothing(content: Any, text: str) -> None:
    reply = {"choices": [{"message": {"content": content}, "finish_reason": "length"}]}
    assert read_reply(json.dumps(reply).encode(), chat=True) == Completion(text, 0, False)


@pytest.mark.parametrize("count", ["1e400", "NaN", '"many"', "null", "[1]", "-1", "1" + "0" * 30])
def test_a_number_of_tokens_that_is_none_counts_as_0(count: str) -> None:
    reply = f'{{"choices": [{{"text": "7"}}], "usage": {{"completion_tokens": {count}}}}}'
    assert read_reply(reply.encode(), chat=False) == Completion("7", 0, True)


@pytest.mark.parametrize("content", ["7", "true", "{}", "[[1]]"])
def test_what_is_no_content_is_an_error(content: str) -> None:
    with pytest.raises(ValueError, match="no completion in the answer"):
        read_reply(f'{{"choices": [{{"message": {{"content": {content}}}}}]}}'.encode(), chat=True)


def test_a_server_may_ask_for_seconds_or_name_a_time() -> None:
    assert asked_wait("7.5") == 7.5
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=120), usegmt=True)
    assert 60 < asked_wait(soon) <= 120
    assert asked_wait("Wed, 21 Oct 2015 07:28:00 GMT") == 0


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(None, 0), ("", 0), ("soon", 0), ("-3", 0), ("nan", 0), ("inf", LONGEST_WAIT), ("86400", LONGEST_WAIT)],
)
def test_what_a_server_asks_for_has_limits(given: str | None, seconds: float) -> None:
    assert asked_wait(given) == seconds
