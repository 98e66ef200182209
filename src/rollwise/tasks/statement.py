r"""What the place of an answer asserts: its first sentence without reasons, in words, and what it denies.

A verifier that takes the first thing it knows in a place reads "42 or 17", "not 42" and "10" in "1000" as answers.
"""

from __future__ import annotations

import re

LONGEST_STATEMENT = 400
"""Characters of a statement; a longer one is no answer but the rest of a text."""

TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mbox|mathrm|mathbf|mathit|operatorname)\s*\{([^{}]*)\}")

SENTENCE = re.compile(r"(?:[.!?]+[)\"'*]*|…)(?:\s+(?=[A-Z\"'(*\\$])|\s*$)|\.{3}|\n")
"""The end of a sentence: its mark before a capital, an ellipsis, the end of the line."""

REASON = re.compile(
    r"\s*[,;]\s*so\b|\s*[,;(]?\s*\b(?:because|since|as|while|whereas|which|given\s+that)\b", re.IGNORECASE
)

RETRACTED = re.compile(
    r"\W*(?:or|wait|actually|maybe|perhaps|possibly|alternatively|sorry|correction|no\s+wait)\b|\W*(?:no|yes)\s*(?:[,.!?]|$)",
    re.IGNORECASE,
)
"""How a sentence opens that takes the last one back: it belongs to the statement, which then says two things."""

NOT = (
    r"(?:\b(?:not|never|neither|nor|cannot\s+be|anything\s+but|other\s+than|rather\s+than|instead\s+of|except(?:\s+for)?)\b"
    r"|n['\u2019]t\b|\\neq?(?![a-zA-Z])|\\not\s*=|\u2260|!=|<>)"
)
"""What denies the thing that follows it; a pattern without groups."""

DENIED_BEFORE = re.compile(
    NOT + r"\s*(?:(?:be|equal(?:\s+to)?|equals|exactly|simply|just)\s*)*[\s({[$*\\]*$", re.IGNORECASE
)


def unwrap(text: str) -> str:
    r"""The words of `\text{...}` and its like as words."""
    return TEXT.sub(r" \1 ", text)


def statement(place: str) -> str:
    """The first sentence of what follows "the answer is", without the reasons it gives; with the next if that turns."""
    place = unwrap(place.strip()[: 4 * LONGEST_STATEMENT])
    end = next((match for match in SENTENCE.finditer(place) if place[: match.start()].strip()), None)
    if end is not None and not RETRACTED.match(place, end.end()):
        place = place[: end.start()]
    reason = next((match for match in REASON.finditer(place) if place[: match.start()].strip()), None)
    return place if reason is None else place[: reason.start()]


def is_denied(before: str) -> bool:
    r"""Whether text ends in "not", `\neq` or their like, so that what follows is not asserted."""
    return DENIED_BEFORE.search(before[-60:]) is not None
