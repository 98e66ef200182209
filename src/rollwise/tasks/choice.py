"""Answers out of a few: the letter of a multiple-choice question, its text, or yes or no."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rollwise.tasks.extraction import final_answer, last_boxed, last_line
from rollwise.tasks.options import LETTERS, equal_option, find_options, match_options, without_options
from rollwise.tasks.statement import LONGEST_STATEMENT, NOT, RETRACTED, statement, unwrap
from rollwise.tasks.verdict import LONGEST, Verdict, failure, is_missing, success, unknown

LETTER = r"(?<![\w'\u2019\\])([{letters}])(?![\w'\u2019]|\s*[+^]|\*\w|-\d)"
"""A letter by itself and in no formula; `letters` is filled in, here and below."""

ANOTHER = r"[)\]}}*.\s]*(?:or|and|/|,|&)\s*(?:(?:maybe|perhaps|possibly|even|also|option)\s*)?\(?[{letters}]\b"
"""A second letter that leaves the choice open, as in "A or B"."""

DENIED = (
    r"(?i:{NOT})[\s(\[*]*(?i:(?:option|choice|answer|be)\s*)*[(\[*]*[{letters}]\b[)\]*]*"
    r"(?:\s*(?:,|or|nor|and)\s*[(\[*]*[{letters}]\b[)\]*]*)*"
    r"|[(\[*]*\b[{letters}]\b[)\]*]*\s+(?:is|was|can|could|does)"
    r"(?:n['\u2019]t\b|not\b|\s+(?:not|wrong|incorrect|false|excluded|impossible)\b)"
)
"""Letters that are denied, before or after they are named."""

WORD = re.compile(r"A (?!(?:is|or|and)\b)[a-z]|I\b")
"""Letters that are words: the article, the pronoun."""

ASKED = re.compile(r"\b(?:yes|true)\s*(?:or|/)\s*(?:no|false)\b\W{0,3}[?:]", re.IGNORECASE)
"""The question repeated, as in "True or false:"."""

YES_NO = re.compile(
    r"(?P<not>" + NOT + r"\s+(?:\w{1,20}ly\s+)?)?\b(?:(?P<word>yes|true|false)\b"
    r"|(?<=yes and )no\b|(?<=yes or )no\b|no\b(?=\s*(?:[^\w\s-]|$"
    r"|(?:and|or|but|yes|no|true|false|wait|because|since|he|she|it|they)\b)))",
    re.IGNORECASE,
)
"""Yes or no said as an answer: the "no" of "no doubt" is none."""

MEANING = {"yes": "yes", "true": "yes", "no": "no", "false": "no", "1": "yes", "0": "no"}
OTHER = {"yes": "no", "no": "yes"}
SEVERAL = "more than one choice"
NOTHING = "no choice found"


def find_choice(text: str, options: Sequence[str] = (), count: int = 4) -> tuple[str | None, str]:
    """The letter chosen among the first `count`, and where it was found or why there is none.

    Looked for in this order: a box, after "the answer is", text that opens with a letter and a full stop or bracket,
    such a last line, the last letter in brackets or stars, the only option whose text is quoted, a last lone letter.
    What is denied ("not B", "B is wrong") is no choice, and a place that holds two is none; a box always decides.
    """
    letters = LETTERS[: len(options) or count]
    another = re.compile(ANOTHER.format(letters=letters))
    opening = re.compile(rf"[\s(\[*_`]*([{letters}])(?:\s*[).\]:*]|\s*$)")
    denied = re.compile(DENIED.replace("{NOT}", NOT).replace("{letters}", letters))

    box, said, last = last_boxed(text), final_answer(text), last_line(text)
    if box:
        return _read_place(unwrap(box[:LONGEST_STATEMENT]), options, letters, denied, "boxed")
    if whole := equal_option(text, options) or equal_option(said or "", options):
        return whole, "the option's text"
    found, where = _read_place(statement(said or ""), options, letters, denied, "after 'answer'")
    if where != NOTHING:
        return found, where
    for place, where in ((text, "at the start"), (last, "on the last line")):
        match = opening.match(place) if place else None
        if place and match and not denied.match(place, match.start(1)):
            return (None, SEVERAL) if another.match(place, match.end(1)) else (match[1], where)
    quoted = find_options(text, options)
    text = denied.sub(" ", without_options(unwrap(text), options))
    if marked := re.findall(rf"[(\[*]([{letters}])[)\]*]", text):
        return marked[-1], "the last letter in brackets"
    if len(quoted) == 1:
        return quoted.pop(), "the only option quoted"
    lone = [
        match for match in re.finditer(LETTER.format(letters=letters), text) if not WORD.match(text, match.start())
    ]
    if not lone:
        return None, NOTHING
    if len(lone) > 1 and another.match(text, lone[-2].end()):
        return None, SEVERAL
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
    """ "yes" or "no" (true and false count as them), and where it was found or why there is none.

    "not true" is no. A place that says both, or takes back what it said ("No wait, yes"), says neither.
    """
    text = ASKED.sub(" ", unwrap(text))
    box, said = last_boxed(text), statement(final_answer(text) or "")
    opening = re.match(r"[\s*_`\"'(]*(yes|no|true|false)\b", text, re.IGNORECASE)
    first = {MEANING[opening[1].lower()]} | _meanings(statement(text)) if opening else set()
    for where, meanings in (
        ("boxed", _meanings(box or "")),
        ("after 'answer'", _meanings(said)),
        ("at the start", first),
    ):
        if len(meanings) > 1:
            return None, "both yes and no"
        if meanings:
            return meanings.pop(), where
        if where == "boxed" and box:
            return None, "neither yes nor no"
    for place, where in ((last_line(text), "on the last line"), (text, "the only one in the text")):
        if len(meanings := _meanings(place or "")) == 1:
            return meanings.pop(), where
    return None, "both yes and no" if _meanings(text) else "neither yes nor no"


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


def _read_place(
    place: str, options: Sequence[str], letters: str, denied: re.Pattern[str], where: str
) -> tuple[str | None, str]:
    """The one choice of a box or statement: a letter, else an option's text; a letter that begins explains after it."""
    if whole := equal_option(place, options):
        return whole, f"the option's text, {where}"
    quoted, decided = match_options(place, options, prose=where != "boxed")
    bare = without_options(place, options)
    asserted = denied.sub(" ", bare)
    letter = re.compile(LETTER.format(letters=letters))
    first = re.match(r"[\s(\[{*_`\"'$]*", asserted)
    start = first.end() if first else 0
    if (colon := re.compile(r"[A-Z][)\]*.]*\s*[:;\u2014]\s").match(asserted, start)) and not RETRACTED.match(
        asserted, colon.end()
    ):
        asserted = asserted[: colon.end()]
    found = [
        match
        for match in letter.finditer(asserted)
        if match.start() == start or not WORD.match(asserted, match.start())
    ]
    if quoted and len(found) == 1 and WORD.match(asserted, found[0].start()):  # "A dog barks" is an option, no letter
        found = []
    chosen = {match[1] for match in found}
    if len(chosen) > 1 or any(re.match(r"[)\]}*.\s]*\bor\b", asserted[match.end() :]) for match in found):
        return None, SEVERAL
    if chosen:
        return chosen.pop(), where
    if len(quoted) > 1:
        return None, SEVERAL
    if quoted:
        return quoted.pop(), f"the option's text, {where}"
    if asserted != bare:
        return None, "a choice is denied, none is made"
    return None, "no option" if decided else NOTHING


def _meanings(place: str) -> set[str]:
    """What a place says, of yes and no."""
    said = ((match["not"], MEANING[(match["word"] or "no").lower()]) for match in YES_NO.finditer(place))
    return {OTHER[meaning] if denied else meaning for denied, meaning in said}
