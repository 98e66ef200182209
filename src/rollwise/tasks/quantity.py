r"""Text that is one number: bare, or with its sign, currency and unit in words, and nothing done to it.

"42 apples", "x = 42" and "minus 42" are plain numbers; "42!", "42x", "42, 17" and "half of 42" are none.
"""

from __future__ import annotations

import re
from fractions import Fraction

from rollwise.tasks.statement import LONGEST_STATEMENT, NOT

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


FRACTION = r"\\[dt]?frac\s*\{\s*(-?\d{1,400})\s*\}\s*\{\s*(-?\d{1,400})\s*\}"
MIXED = re.compile(
    r"(?<![\w.,/])(\d{1,400})\s*" + FRACTION + r"|(?<![\w.,/])(\d{1,400}) (\d{1,400})/(\d{1,400})(?![\w/])"
)
"""A whole number and a fraction, as in "1 1/10"."""

RATIO = re.compile(FRACTION)

DIGITS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d{1,4}(?!\w))?(?:\s?/\s?\d+)?|\.\d+")
NEGATIVE = re.compile(r"\b(?:minus|negative)\s*$", re.IGNORECASE)
SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
SCALE = re.compile(r"[\s-]*(" + "|".join(SCALES) + r")s?\b", re.IGNORECASE)

DENIED = re.compile(
    NOT + r"\s*(?:be\s+|equal\s+to\s+|exactly\s+|simply\s+|just\s+)*[-\u2212]?\d[\d.,/]*(?:\s*[,;]?\s*\bbut\b)?",
    re.IGNORECASE,
)
"""A number that is denied, as in "not 42, but 17": what stays is what is asserted."""

MARKUP = re.compile(
    r"\\[()\[\]]|\*\*|[`\"\u201c\u201d~\u00b0]|\^\{?\s*\\circ\s*\}?|\\(?:left|right|displaystyle|quad|qquad)(?![a-zA-Z])"
    r"|\\[,;:!\s]|\\?[$%\u20ac\u00a3]"
)
"""What dresses a number without changing it: delimiters, spaces, currencies, per cent, degrees."""

BEFORE = re.compile(r"(?:[^\W\d_]|[\s,:.('\u2019]|(?<=[^\W\d_])-(?=[^\W\d_]))*")
AFTER = re.compile(r"(?:[^\W\d_]|[\s,.()?'\u2019]|-(?=[^\W\d_]{3})|/(?=\s*[^\W\d_]))*")
"""Words and the marks of a sentence; one character at a time, so that matching stays linear."""

SQUARED = re.compile(r"(?<=[^\W\d_])\s*(?:\^\s*(?:[23](?!\d)|\{\s*[23]\s*\})|[\u00b2\u00b3])")
"""The square or cube of a unit."""

WORD = re.compile(r"[^\W\d_]+")
OPERATION = re.compile(
    r"\b(?:plus|minus|times|squared|cubed|factorial|(?<!left )over|divided|multiplied|hal(?:f|ves)"
    r"|quarters?|thirds?|pi|mod(?:ulo)?|power|roots?|sqrt|log|ln|exp|sin|cos|tan|point|n?or|n?either|not|never|wrong|incorrect)\b",
    re.IGNORECASE,
)
"""Words beside a number that make it another one, or no assertion."""

COMPARISON = re.compile(
    r"\b(?:than|least|most|under|above|below|beyond|between|within|except|double|twice|triple|thrice|square|cube"
    r"|opposite|inverse|reciprocal|modulus)\b",
    re.IGNORECASE,
)
"""Words before a number that do so too."""

SHORT = re.compile(
    r"a|i|in|of|at|to|on|we|he|it|is|as|by|if|so|an|up|no|us|am|pm|[cmk]m|mi|ft|yd|[mk]?g|[cmd]?l|lb|oz|hr|st|nd|rd|th"
    r"|[mshl]|[kmg]b|hz|lbs|hrs|rs|mph|kph",
    re.IGNORECASE,
)
"""Words and units of a letter or two, or without a vowel; other such letters are variables."""

ATTACHED = re.compile(
    r"(?:[cmk]m|[mk]?g|[cmd]?[lL]|ft|lbs?|oz|hrs?|mins?|secs?|mph|kph|[kMG]?B|[ap]m|st|nd|rd|th|USD|EUR)\b"
)
"""Units that are written without a space."""


def plain_number(text: str, prose: bool = False) -> Fraction | None:
    """The exact value of text that is one number and words that leave it as it is; None for anything else.

    In prose a number may be followed by an exclamation mark; elsewhere that is a factorial. "x = 42" is 42,
    "minus 42" is -42, "42 million" has its value, "not 42, but 17" is 17.
    """
    if (bare := read_number(text)) is not None:
        return bare
    if len(text) > LONGEST_STATEMENT:
        return None
    text = re.sub(r"^\s*\{([^{}]*)\}\s*$", r"\1", text)
    text = _right_side(DENIED.sub(" ", _undress(text)))
    if prose:
        text = text.rstrip().rstrip("!")
    value, start, end = _only_number(text)
    if value is None:
        return None
    before, after = text[:start], text[end:]
    if minus := NEGATIVE.search(before):
        value, before = -value, before[: minus.start()]
    elif signed := re.search(r"(?:^|(?<=[\s(:]))[-\u2212+]\s?$", before):
        value, before = -value if signed.group()[0] != "+" else value, before[: signed.start()]
        if re.search(r"\w\s*$", before) and not prose:
            return None
    while scaled := SCALE.match(after):
        value, after = value * SCALES[scaled[1].lower()], after[scaled.end() :]
    return value if _leave_alone(before, after) else None


def scale(after: str) -> int:
    """What a word after a number multiplies it by: 1000000 for "million", 1 where there is none."""
    found = SCALE.match(after)
    return SCALES[found[1].lower()] if found else 1


def _undress(text: str) -> str:
    """Without markup and thousands separators, "10^3" after a factor as an exponent."""
    text = re.sub(r"(?<=\d)(?:\{,\}|,?\\[,!]|,\\!)(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"\\(?:approx|equiv|Rightarrow|implies|rightarrow|to)(?![a-zA-Z])|[\u2248\u2192]", "=", text)
    text = MARKUP.sub(
        " ", re.sub(r"(?<![\w.,])(\d{1,3}(?:,\d{3})+)(?![\d,])", lambda whole: whole[1].replace(",", ""), text)
    )
    text = re.sub(r"\bper\s*cent\b", " ", text, flags=re.IGNORECASE)
    return re.sub(
        r"(?<=\d)\s*(?:\\times|\\cdot|\u00d7|\*)\s*10\s*\^\s*(?:\{\s*([-+]?\d{1,4})\s*\}|(\d{1,4})(?!\d))",
        r"e\1\2",
        text,
    )


def _right_side(text: str) -> str:
    """What a chain of equations ends in; the text as it is where the chain is a list of them."""
    *left, right = text.split("=")
    if not left or any(re.search(r"[,;]|\b(?:and|or)\b", re.sub(r"\([^()]*\)", "", part)) for part in left):
        return text
    return right if re.search(r"\d", right) else left[-1]


def _only_number(text: str) -> tuple[Fraction | None, int, int]:
    """The value of the one number in text and where it stands; None where there is none or more than one."""
    found = MIXED.search(text) or RATIO.search(text) or DIGITS.search(text)
    if found is None or re.search(r"\d", text[: found.start()] + SQUARED.sub("", text[found.end() :])):
        return None, 0, 0
    if found.re is DIGITS:
        return read_number(found.group()), *found.span()
    *whole, over, under = (group for group in found.groups() if group)
    part = _ratio(over, under)
    if part is not None and whole:
        part = int(whole[0]) + part if part >= 0 else None
    return part, *found.span()


def _leave_alone(before: str, after: str) -> bool:
    """Whether the text around a number is words and units that leave it as it is."""
    after = SQUARED.sub("", after)
    if not BEFORE.fullmatch(before) or not AFTER.fullmatch(after) or re.search(r"\w$", before):
        return False
    if OPERATION.search(before) or OPERATION.search(after) or COMPARISON.search(before):
        return False
    attached = WORD.match(after)
    if re.match(r"\s*i\b", after):  # the imaginary unit
        return False
    if attached and not ATTACHED.match(after) and (len(attached.group()) < 4 or not _is_word(attached.group())):
        return False
    return all(map(_is_word, WORD.findall(before + " " + after)))


def _is_word(word: str) -> bool:
    return SHORT.fullmatch(word) is not None or (
        len(word) > 2 and re.search(r"[aeiouy]|[^a-z]", word.lower()) is not None
    )


def _ratio(over: str, under: str) -> Fraction | None:
    try:
        return Fraction(over) / Fraction(under)
    except (ValueError, ZeroDivisionError):
        return None
