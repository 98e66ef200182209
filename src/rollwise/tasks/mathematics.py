"""Mathematical answers compared by value, by the `math-verify` package; run it in a process of its own (`pool`).

`settle` decides in this process what needs no parser; `judge_mathematics` decides the rest and may hang or crash.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Mapping
from typing import Any

from rollwise.tasks.extraction import final_answer, last_boxed, plain_latex
from rollwise.tasks.numeric import is_open
from rollwise.tasks.quantity import SCALE, plain_number, read_number
from rollwise.tasks.statement import NOT, statement, unwrap
from rollwise.tasks.verdict import LONGEST, Verdict, failure, is_missing, success, unknown

FORMULA = 600
"""Characters an answer may have, where the row's own is not longer."""

DEPTH = 12
"""Braces and brackets an answer may nest; published ones nest 4."""

PARTS = 60
"""Commas, signs and column marks an answer may have."""

EXPANSION = 60
"""Largest power of a bracket."""

POWER = 10_000
"""Largest exponent, and argument of a factorial, that is worked out where the row's own answer has none as large."""

READ = 4_000
"""Characters of a completion without a box that the package's patterns look through, its last ones."""

PROSE = re.compile(r"(?<![\\\w])(?:[A-Za-z]{2,}|[\d.,]+)\s+[A-Za-z]{2,}")
"""Two words in a row, or a number and its unit, as no formula has."""

UNSETTLED = re.compile(NOT + r"|\b(?:n?or|minus|negative)\b", re.IGNORECASE)
"""What the package reads past: "not 42" and "42 or 17" are 42 to it."""

SCIENTIFIC = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[eE]([-+]?\d{1,4})(?!\w)")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def gold_text(answer: Any) -> str:
    """A row's answer as one text: of a list, as OlympiadBench has, the entries separated by commas."""
    parts = answer if isinstance(answer, (list, tuple)) else [answer]
    return ", ".join(str(part) for part in parts if part is not None)


def settle(completion: str, row: Mapping[str, Any]) -> Verdict | None:
    """The verdict where no parser is needed: nothing to compare with, the same text or number, a trap; else None."""
    gold = gold_text(row.get("answer"))
    if is_missing(row.get("answer")) or is_missing(gold):
        return unknown("the row has no answer")
    box = last_boxed(completion[-LONGEST:])
    if box is None:
        _, hashes, tail = completion[-READ:].rpartition("####")
        said = statement((tail.strip().partition("\n")[0] if hashes else final_answer(completion[-READ:])) or "")
        if said:
            return _settle_statement(said, gold)
        return failure("a number that is denied, or one of two") if is_open(completion[-READ:]) else None
    if re.search(NOT, unwrap(box)) and not re.search(NOT, unwrap(gold)):
        return failure("a value is denied", _spell_text(box))
    if SCALE.search(unwrap(box)) and (compared := _compare_numbers(unwrap(box), gold)) is not None:
        return compared
    if plain_latex(box) == plain_latex(gold) != "":
        return success("the same text", _spell_text(box))
    if (compared := _compare_numbers(box, gold)) is not None:
        return compared
    return failure(trap, _spell_text(box)) if (trap := find_trap(box, gold)) else None


def judge_mathematics(completion: str, row: Mapping[str, Any]) -> Verdict:
    """Success where the last boxed expression, else what the package finds in the text, equals `answer`.

    A completion without an expression is wrong; unknown where `answer` can't be parsed.
    """
    from math_verify import parse, verify

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns that it runs without its own timeout
    if (settled := settle(completion, row)) is not None:
        return settled
    gold = gold_text(row.get("answer"))
    box = last_boxed(completion[-LONGEST:])
    text = completion[-READ:] if box is None else f"$\\boxed{{{box}}}$"
    text = SCIENTIFIC.sub(r"\1 \\times 10^{\2}", CONTROL.sub(" ", text))
    if box is None and (trap := find_trap(text, gold, longest=READ + 100, deepest=20)):
        return failure(trap)
    expressions = parse_gold(gold)
    if not expressions:
        return unknown("the row's answer can't be parsed")
    found = parse(text, parsing_timeout=None, raise_on_error=True)
    if not found:
        return failure("no expression found")
    same = verify(expressions, found, timeout_seconds=None, raise_on_error=True)
    return success("equal values", spell(found[0])) if same else failure("another value", spell(found[0]))


@functools.lru_cache(maxsize=4096)
def parse_gold(answer: str) -> list[Any]:
    """The expressions of a row's answer; unless it is marked or prose, all of it is one expression.

    Without the dollars the parser would take the 2 of a bare "4a-2" for the answer.
    """
    from math_verify import parse

    answer = SCIENTIFIC.sub(r"\1 \\times 10^{\2}", answer)
    if answer.count("$") > 2:  # "$1$,$2$" is one list
        answer = "$" + answer.replace("$", "") + "$"
    marked = any(mark in answer.replace("\\$", "") for mark in ("$", "\\boxed", "\\[", "\\("))
    text = answer if marked or PROSE.search(answer) else f"${answer}$"
    return parse(text, fallback_mode="no_fallback", parsing_timeout=None, raise_on_error=True)


def find_trap(text: str, gold: str, longest: int = FORMULA, deepest: int = DEPTH) -> str | None:
    """Why text is no answer to be parsed: longer, deeper or of more parts than an answer, or of higher powers.

    What `gold` has itself, or four times of its length and parts, is no trap.
    """
    if len(text) > max(longest, 4 * len(gold)):
        return f"too long for an answer ({len(text)} characters)"
    if (depth := _depth(text)) > max(deepest, _depth(gold)):
        return f"nested {depth} deep"
    if longest == FORMULA and _parts(text) > max(PARTS, 4 * _parts(gold)):
        return f"an answer of {_parts(text)} parts"
    if _powers(text) > max(POWER, _powers(gold)) or _expansion(text) > max(EXPANSION, _expansion(gold)):
        return "a power too large to work out"
    return None


def spell(value: Any) -> str:
    """A spelling that equal values share: whole numbers in full, others to 10 digits, expressions as sympy prints."""
    import math
    from fractions import Fraction

    if isinstance(value, str):
        return _spell_text(value)
    try:
        number = value if isinstance(value, Fraction) else _number_of(value)
        if number is not None:
            whole = number.denominator == 1 if isinstance(number, Fraction) else float(number).is_integer()
            if whole and abs(number) < 10**18:
                return str(int(number))
            if math.isfinite(float(number)):
                return f"{float(number):.10g}"
        return str(value)[:200]
    except (ValueError, TypeError, OverflowError, ArithmeticError, AttributeError):
        return str(value)[:200]


def _settle_statement(said: str, gold: str) -> Verdict | None:
    """The verdict on the statement of an answer: plain numbers, denials, more than one answer; None for all else."""
    if (
        (compared := _compare_numbers(said, gold, prose=True)) is not None
        or not UNSETTLED.search(said)
        or UNSETTLED.search(gold)
    ):
        return compared
    return failure("more than one answer, or one that is denied", _spell_text(said))


def _compare_numbers(found: str, gold: str, prose: bool = False) -> Verdict | None:
    """The verdict on two plain numbers; None unless both are, and where a rounding of one may equal the other."""
    right = read_number(gold)
    number = None if right is None else plain_number(found, prose)
    if number is None or right is None:
        return None
    if number == right:
        return success("equal numbers", spell(number))
    return failure("another number", spell(number)) if number.denominator == right.denominator == 1 else None


def _number_of(value: Any) -> Any:
    """The float of a small constant expression; None for all else."""
    if not getattr(value, "is_number", False) or not getattr(value, "is_real", False) or value.count_ops() > 50:
        return None
    return float(value.evalf(15))


def _spell_text(text: str) -> str:
    return plain_latex(text)[:200]


def _depth(text: str) -> int:
    depth = deepest = 0
    for mark in re.findall(r"[{}()\[\]]", text):
        depth += 1 if mark in "{([" else -1
        deepest = max(deepest, depth)
    return deepest


def _parts(text: str) -> int:
    return sum(text.count(mark) for mark in ",;+-&")


def _expansion(text: str) -> float:
    """The largest power of a bracket."""
    powers = re.findall(r"[)\]]\^\{?-?(\d{1,12})", re.sub(r"\s|\\right", "", text))
    return max(map(float, powers), default=0.0)


def _powers(text: str) -> float:
    """The largest exponent or factorial argument in sight, infinite for towers of three; 0 where there is none."""
    plain = re.sub(r"[{}\s()]|\\left|\\right", "", text.replace("**", "^"))
    if re.search(r"\^-?\w+\^-?\w+\^|!\s*!\s*!", plain):
        return float("inf")
    largest = 0.0
    for over, under in re.findall(r"\^-?(\d{1,9})\^(\d{1,9})", plain):
        largest = max(
            largest, min(int(over), 10**6) ** min(int(under), 8) if int(under) < 9 or int(over) < 2 else 1e99
        )
    for digits in re.findall(r"\^[-+]?(\d+)|(?<!\d)(\d+)!", plain):
        exponent = digits[0] or digits[1]
        largest = max(largest, float(exponent) if len(exponent) < 300 else float("inf"))
    return largest
