"""The options of a question quoted in a text: whole words and numbers, never parts of longer ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rollwise.tasks.extraction import plain_latex
from rollwise.tasks.quantity import plain_number, read_number
from rollwise.tasks.statement import NOT, unwrap

LETTERS = "ABCDEFGHIJ"

LEFT = r"(?<![\w\\])(?<!\d[.,/:])"
RIGHT = r"(?!\w)(?![.,/:]\d)"
IN_FORMULA = (r"(?<![-+*/^(\u2212])(?<![-+*/^\u2212] )", r"(?!\s*[-+*/^\u2212]\s*[\w\\({]|!)")
"""What stands beside a number or sign that is a part of a formula."""

WORDS = re.compile(r"(?<!\\)\b[^\W\d_]{2,}")


def find_options(text: str, options: Sequence[str]) -> set[str]:
    """The letters of the options whose text occurs as whole words and is not denied; one inside another doesn't count."""
    bare = _bare(text)
    spans = {
        LETTERS[index]: [match.span(2) for match in re.finditer(_pattern(option), bare) if not match[1]]
        for index, option in enumerate(options)
        if _bare(option) and _bare(option) in bare
    }
    every = [span for own in spans.values() for span in own]
    return {letter for letter, own in spans.items() if any(not _is_inside(span, every) for span in own)}


def equal_option(text: str, options: Sequence[str]) -> str | None:
    """The letter of the first option that is the whole text."""
    bare = _bare(text)
    return next((LETTERS[index] for index, option in enumerate(options) if bare and _bare(option) == bare), None)


def without_options(text: str, options: Sequence[str]) -> str:
    """Text without quotes of options of several words, whose letters and denials are theirs: "Stock A, not B, rises"."""
    for option in sorted(options, key=len, reverse=True):
        words = unwrap(option).strip().rstrip(".").split()
        if len(words) > 1 and _bare(option) in _bare(text):
            text = re.sub(r"\s+".join(map(re.escape, words)) + r"(?!\w)", " ", text, flags=re.IGNORECASE)
    return text


def match_options(place: str, options: Sequence[str], prose: bool) -> tuple[set[str], bool]:
    """The letters of the options that a box or statement gives, and whether it gives something that is no option.

    A number is compared by value, a formula must be the whole place, words may have others around them.
    """
    number = plain_number(place, prose)
    values = [read_number(option.strip().strip("$")) for option in options]
    right = plain_latex(place.rpartition("=")[2])
    worded = find_options(place, [option if WORDS.search(option) else "" for option in options])
    found = {
        LETTERS[index]
        for index, option in enumerate(options)
        if (values[index] is not None and values[index] == number)
        or (
            values[index] is None
            and right
            and not WORDS.search(option)
            and plain_latex(option) in (right, plain_latex(place))
        )
    }
    numeric = bool(options) and all(value is not None for value in values)
    return found | worded, (numeric and re.search(r"\d", place) is not None) or (not prose and bool(place.strip()))


def _bare(text: str) -> str:
    return " ".join(unwrap(text).replace("$", "").casefold().split()).rstrip(".")


def _pattern(option: str) -> str:
    """The option as whole words, not after "not"; where it ends in a digit or sign, outside of formulas."""
    bare = _bare(option)
    formula = not WORDS.search(bare)
    left, right = IN_FORMULA if formula else ("", "")
    return rf"({NOT}\s*)?{LEFT}{left}({re.escape(bare)}){RIGHT}{right}"


def _is_inside(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    """Whether a longer span holds this one."""
    return any(start <= span[0] and span[1] <= end and end - start > span[1] - span[0] for start, end in others)
