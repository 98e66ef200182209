"""Answers out of a few: the letter of a multiple-choice question, yes or no."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rollwise.tasks.extraction import final_answer, last_boxed, last_line
from rollwise.tasks.verdict import LONGEST, Verdict, failure, is_missing, success, unknown

LETTERS = "ABCDEFGHIJ"

DECORATED = r"[\s(\[{{*_`\"'$]*(?:\\(?:text|mathrm|textbf|mathbf)\s?\{{)?[(\[]?([{letters}])"
"""A letter with what may stand around it: brackets, stars, quotes, a LaTeX text command; `letters` is filled in."""

ANOTHER = r"\s*[)\]}}*.]*\s*(?:or|and|/|,|&)\s*\(?[{letters}]\b"
"""A second letter that leaves the choice open, as in "A or B"."""

WORD = re.compile(r"A (?!(?:is|or|and)\b)[a-z]|I\b")
"""Letters that are words: the article, the pronoun."""

YES_NO = re.compile(r"\b(yes|no|true|false)\b", re.IGNORECASE)
MEANING = {"yes": "yes", "true": "yes", "no": "no", "false": "no", "1": "yes", "0": "no"}


def find_choice(text: str, options: Sequence[str] = (), count: int = 4) -> tuple[str | None, str]:
    """The letter chosen among the first `count`, and where it was found or why there is none.

    Looked for in this order: a box, after "the answer is", text that opens with a letter and a full stop or bracket,
    such a last line, the last letter in brackets or stars, the only option whose text is quoted, a last lone letter.
    """
    letters = LETTERS[: len(options) or count]
    decorated = re.compile(DECORATED.format(letters=letters))
    another = re.compile(ANOTHER.format(letters=letters))
    opening = re.compile(rf"[\s(\[*_`]*([{letters}])(?:\s*[).\]:*]|\s*$)")

    box, said, last = last_boxed(text), final_answer(text), last_line(text)
    for place, where in ((box, "boxed"), (said, "after 'answer'")):
        found = decorated.match(place) if place is not None else None
        if place is not None and found and not re.match(r"\w", place[found.end() :]):
            if another.match(place, found.end()):
                return None, "more than one choice"
            return found[1], where
        quoted = _only_option(place, options) if place else None
        if quoted:
            return quoted, f"the option's text, {where}"
    for place, where in ((text, "at the start"), (last, "on the last line")):
        found = opening.match(place) if place else None
        if place and found:
            return (None, "more than one choice") if another.match(place, found.start(1) + 1) else (found[1], where)
    if marked := re.findall(rf"[(\[*]([{letters}])[)\]*]", text):
        return marked[-1], "the last letter in brackets"
    if quoted := _only_option(text, options):
        return quoted, "the only option quoted"
    lone = [
        match
        for match in re.finditer(rf"(?<![\w'])([{letters}])(?![\w'])", text)
        if not WORD.match(text, match.start())
    ]
    if not lone:
        return None, "no choice found"
    if len(lone) > 1 and another.match(text, lone[-2].end()):
        return None, "more than one choice"
    return lone[-1][1], "the last letter"


def judge_choice(completion: str, row: Mapping[str, Any]) -> Verdict:
    """Success where the completion chooses the letter in `answer`; `options`, where the row has them, may be quoted.

    Unknown where `answer` is no letter of a choice.
    """
    gold = row.get("answer")
    options = [str(option) for option in row.get("options") or ()][: len(LETTERS)]
    letters = LETTERS[: len(options) or 4]
    right = str(gold).strip().strip("().").upper() if not is_missing(gold) else ""
    if len(right) != 1 or right not in letters:
        return unknown("the row's answer is no letter of a choice")
    found, where = find_choice(completion[-LONGEST:], options)
    if found is None:
        return failure(where)
    return success(where, found) if found == right else failure(where, found)


def find_yes_no(text: str) -> tuple[str | None, str]:
    """ "yes" or "no" (true and false count as them), and where it was found or why there is none."""
    last = last_line(text)
    for place, where in ((last_boxed(text), "boxed"), (final_answer(text), "after 'answer'")):
        if place and (found := YES_NO.search(place)):
            return MEANING[found[1].lower()], where
    opening = YES_NO.match(text.lstrip(" \n*_`\"'("))
    if opening:
        return MEANING[opening[1].lower()], "at the start"
    for place, where in ((last, "on the last line"), (text, "the only one in the text")):
        said = {MEANING[word.lower()] for word in YES_NO.findall(place or "")}
        if len(said) == 1:
            return said.pop(), where
    return None, "both yes and no" if YES_NO.search(text) else "neither yes nor no"


def judge_yes_no(completion: str, row: Mapping[str, Any]) -> Verdict:
    """Success where the completion says yes or no (true or false) as `answer` does; unknown where `answer` does not."""
    gold = row.get("answer")
    right = None if is_missing(gold) else MEANING.get(str(gold).strip().lower())
    if right is None:
        return unknown("the row's answer is neither yes nor no")
    found, where = find_yes_no(completion[-LONGEST:])
    if found is None:
        return failure(where)
    return success(where, found) if found == right else failure(where, found)


def _only_option(text: str, options: Sequence[str]) -> str | None:
    """The letter of the one option whose text occurs; an option inside another does not count beside it."""
    bare = text.casefold()
    quoted = [index for index, option in enumerate(options) if option.strip() and option.strip().casefold() in bare]
    longest = [
        index for index in quoted if not any(options[index] in options[other] for other in quoted if other != index)
    ]
    return LETTERS[longest[0]] if len(longest) == 1 else None
