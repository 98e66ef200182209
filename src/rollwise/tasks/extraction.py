"""Where the answer stands in a completion: one function per rule, each linear in the text's length."""

from __future__ import annotations

import re
from collections.abc import Callable

from rollwise.tasks.statement import is_denied

NUMBER = re.compile(r"-?(?:\d+(?:,\d{3})+|\d+)(?:\.\d+)?|-?\.\d+")

MARKER = re.compile(
    r"\banswer\b(?:\s+(?:to|for)\b[^.:\n]{0,60}?)?\**\s*(?:is\b\s*:?|(?:should|must|will)\s+be\b\s*:?|:|=)|^[ \t]*A:",
    re.IGNORECASE | re.MULTILINE,
)
""" "The answer is", "answer to the question is", "Final answer:", and the "A:" that opens a line."""

LONGEST_FORMULA = 2_000
"""Characters up to which `plain_latex` rewrites a formula."""

BOX = re.compile(r"\\f?box(?:ed)?[ \t]*(?=\{)")


def last_line(text: str) -> str | None:
    """The last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)


def last_number(text: str) -> str | None:
    """The last number, thousands separators removed; None where it is denied ("not 42")."""
    found = list(NUMBER.finditer(text))
    if not found or is_denied(text[: found[-1].start()]):
        return None
    return found[-1].group().replace(",", "")


def after_hashes(text: str) -> str | None:
    """The number after the last "####", as GSM8K marks its answers."""
    _, marker, tail = text.rpartition("####")
    found = NUMBER.search(tail) if marker else None
    return None if found is None or is_denied(tail[: found.start()]) else found.group().replace(",", "")


def last_character(text: str) -> str | None:
    """The last character that is not blank: the result of a chain, whatever its scratchpad."""
    return text.strip()[-1:] or None


def last_boxed(text: str) -> str | None:
    r"""The content of the last closed `\boxed{...}`; `\fbox{...}` and `\boxed 3` count too."""
    for box in reversed(list(BOX.finditer(text))[-8:]):  # unclosed ones are skipped; more of them than that are a trap
        depth = 0
        for brace in re.finditer(r"(?<!\\)[{}]", text[box.end() :]):
            depth += 1 if brace.group() == "{" else -1
            if depth == 0:
                return text[box.end() + 1 : box.end() + brace.start()].strip()
    bare = re.findall(r"\\boxed[ \t]+([^\s{}$.\\]+)", text)
    return bare[-1] if bare else None


def boxed(text: str) -> str | None:
    """The last boxed answer in a plain spelling, so that answers that differ in spacing alone compare as equal."""
    found = last_boxed(text)
    return None if found is None else plain_latex(found)


def plain_latex(text: str) -> str:
    r"""The same formula without spacing, `\left` and `\right`, `\dfrac`, `\text`, dollars, degrees and units after it."""
    if len(text) > LONGEST_FORMULA:
        return text.strip()
    text = re.sub(r"(?<=[\w})])\s*\\(?:text|mbox|mathrm)\s*\{\s[^{}]*\}$", "", text.strip())
    text = re.sub(
        r"(?<=\d),\\!(?=\d{3})|\\(?:(?:left|right|displaystyle)(?![a-zA-Z])|[!,;:\s])|\\q?quad\b|~", "", text
    )
    text = re.sub(r"\\[dt]frac", r"\\frac", text)
    text = re.sub(r"\\(?:text|mbox|mathrm|textbf|mathbf)\s*\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\^\{?\s*\\circ\s*\}?|\\?[$%]", "", text)
    return re.sub(r"\s+", "", text).rstrip(".")


def final_answer(text: str) -> str | None:
    """What follows the last "the answer is", "Answer:" or "A:", to the end of its line."""
    found = list(MARKER.finditer(text))
    if not found:
        return None
    tail = text[found[-1].end() :].lstrip()
    return (tail.splitlines() or [""])[0].strip().rstrip(".").strip("*` ") or None


EXTRACTIONS: dict[str, Callable[[str], str | None]] = {
    "whole": str.strip,
    "last_line": last_line,
    "last_number": last_number,
    "after_hashes": after_hashes,
    "last_character": last_character,
    "boxed": boxed,
    "final_answer": final_answer,
}
"""Rule -> the answer it finds in a completion, None where there is none."""
