"""Numbers as answers: where the final one stands, what it is exactly, and whether it is the row's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rollwise.tasks.extraction import final_answer, last_boxed
from rollwise.tasks.quantity import LARGEST, NEGATIVE, NUMBER, plain_number, read_number, scale
from rollwise.tasks.statement import is_denied, statement, unwrap
from rollwise.tasks.verdict import LONGEST, Verdict, failure, is_missing, success, unknown

ALTERNATIVE = re.compile(r"\d\W*(?:\w+\W+){0,2}\bor\b\W*(?:\w+\W+){0,2}$", re.IGNORECASE)
"""Text before a number that leaves the choice between it and one before."""


def final_number(text: str) -> Fraction | None:
    """The number an answer ends in; None where it ends in none, or in something that is no plain number."""
    return find_number(text)[0]


def find_number(text: str) -> tuple[Fraction | None, str]:
    """The value of the number an answer ends in, and the text it was read in.

    A box that holds anything decides; then the line after the last "####" and the statement after the last
    "answer is" where they hold a digit; else the last number, unless it is denied or the second of "42 or 17".
    """
    if box := last_boxed(text):
        return plain_number(unwrap(box)), box
    _, hashes, tail = text.rpartition("####")
    for place in (tail.partition("\n")[0] if hashes else None, final_answer(text)):
        said = statement(place) if place else ""
        if re.search(r"\d", said):
            return plain_number(said, prose=True), said
    numbers = list(NUMBER.finditer(text))
    if not numbers:
        return None, ""
    last = numbers[-1]
    before = text[max(0, last.start() - 60) : last.start()]
    if _leaves_open(before):
        return None, last.group()
    value = read_number(last.group())
    if value is not None and NEGATIVE.search(before):
        value = -value
    times = scale(text[last.end() : last.end() + 40])
    return (None if value is None else value * times), last.group()


def is_open(text: str) -> bool:
    """Whether the last number of a text is denied, or the second of "42 or 17"."""
    numbers = list(NUMBER.finditer(text))
    return bool(numbers) and _leaves_open(text[max(0, numbers[-1].start() - 60) : numbers[-1].start()])


def judge_number(completion: str, row: Mapping[str, Any]) -> Verdict:
    """Success where the completion's final number has exactly the value of `answer`.

    Unknown where `answer` is missing or holds no number; a completion without a number is wrong.
    """
    gold = row.get("answer")
    if is_missing(gold):
        return unknown("the row has no answer")
    right = read_number(str(gold))
    if right is None:
        right = _gold_number(str(gold)[-LONGEST:])
    if right is None:
        return unknown("the row's answer is no number")
    found, text = find_number(completion[-LONGEST:])
    if found is None:
        return failure("no plain number", text[:40]) if text else failure("no number found")
    spelled = str(found)[:LARGEST]
    return success("equal numbers", spelled) if found == right else failure("another number", spelled)


def _leaves_open(before: str) -> bool:
    return is_denied(before) or ALTERNATIVE.search(before) is not None


def _gold_number(text: str) -> Fraction | None:
    """The number of a row's answer with its unit, or of a worked one: in its box, after its "####"."""
    if last_boxed(text) is not None or "####" in text:
        return final_number(text)
    return plain_number(statement(text), prose=True)
