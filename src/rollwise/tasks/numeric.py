"""Numbers as answers: where the final one stands, what it is exactly, and whether it is the row's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rollwise.tasks.extraction import final_answer, last_boxed
from rollwise.tasks.verdict import LONGEST, Verdict, failure, is_missing, success, unknown

LARGEST = 400
"""Most characters and largest exponent of a number; beyond that it is a trap, not an answer."""

NUMBER = re.compile(
    r"(?:(?<![\w)\]}])[-\u2212+])?\s?(?:\\?[$\u20ac\u00a3]\s?)?"
    r"(?:\d{1,3}(?:(?:,|\\,|\{,\})\d{3}){1,40}(?!\d)|\d+|(?=\.\d))(?:\.\d+)?(?:[eE][-+]?\d{1,4}(?!\w))?"
    r"(?:\s?/\s?\d{1,400}(?![\d/]))?"
)
"""A number with sign, currency, thousands separators, exponent and denominator."""

LATEX = re.compile(r"([-\u2212]?)\s*\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(-?\d+)\s*\}")
PLAIN = re.compile(
    r"\s*([-+\u2212]?)\s*(?:\\?[$\u20ac\u00a3])?\s*"
    r"(\d{1,3}(?:(?:,|\\,|,?\\!|\{,\}|,\\!)\d{3})+|\d+|(?=\.\d))(\.\d*)?(?:[eE]([-+]?\d+))?"
    r"\s*(?:/\s*(\d+))?\s*(?:\\?[%$])?\.?\s*"
)
"""Text that is one number: sign, whole part with thousands separators or none, decimals, exponent, denominator."""


def read_number(text: str) -> Fraction | None:
    """The exact value of text that is one number and nothing else (separators, currency and per cent signs aside).

    None for anything else, and for more than LARGEST digits or a larger exponent.
    """
    if len(text) > LARGEST:
        return None
    if latex := LATEX.fullmatch(text.strip()):
        sign, over, under = latex.groups()
        value = _ratio(over, under)
        return -value if value is not None and sign else value
    plain = PLAIN.fullmatch(text)
    if plain is None:
        return None
    sign, whole, decimals, exponent, under = plain.groups()
    if exponent and abs(int(exponent)) > LARGEST:
        return None
    digits = re.sub(r"\D", "", whole) or "0"
    value = _ratio(f"{digits}{(decimals or '').rstrip('.')}e{exponent or 0}", under or "1")
    return -value if value is not None and sign in ("-", "\u2212") else value


def final_number(text: str) -> str | None:
    """The number an answer ends in: boxed, after the last "####", after the last "answer is", else the last one."""
    box = last_boxed(text)
    _, hashes, tail = text.rpartition("####")
    for place in (box, tail.partition("\n")[0] if hashes else None, final_answer(text)):
        if place is None:
            continue
        if LATEX.fullmatch(place.strip()):
            return place.strip()
        if found := NUMBER.search(place.rpartition("=")[2]) or NUMBER.search(place):
            return found.group().strip()
    numbers = [found.group() for found in NUMBER.finditer(text)]
    return numbers[-1].strip() if numbers else None


def judge_number(completion: str, row: Mapping[str, Any]) -> Verdict:
    """Success where the completion's final number has exactly the value of `answer`.

    Unknown where `answer` is missing or holds no number; a completion without a number is wrong.
    """
    gold = row.get("answer")
    if is_missing(gold):
        return unknown("the row has no answer")
    right = read_number(str(gold))
    if right is None:
        right = _marked_number(str(gold)[-LONGEST:])
    if right is None:
        return unknown("the row's answer is no number")
    text = final_number(completion[-LONGEST:])
    if text is None:
        return failure("no number found")
    found = read_number(text)
    if found is None:
        return failure("no number of a reasonable size", text[:40])
    spelled = str(found)[:LARGEST]
    return success("equal numbers", spelled) if found == right else failure("another number", spelled)


def _marked_number(text: str) -> Fraction | None:
    """The number of a worked answer: in its box, after its "####", or the only one in it."""
    if last_boxed(text) is None and "####" not in text and len(NUMBER.findall(text)) != 1:
        return None
    return read_number(final_number(text) or "")


def _ratio(over: str, under: str) -> Fraction | None:
    try:
        return Fraction(over) / Fraction(under)
    except (ValueError, ZeroDivisionError):
        return None
