"""Built-in rewards in TRL's signature, `(prompts, completions, **columns) -> list of 1.0, 0.0 or None for unknown`.

They compare with the column `answer`. Unknown is what can't be judged: no answer to compare with, or a verifier that
failed or ran out of time; it never counts as wrong.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from rollwise.imports import load_function
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

RewardFunction = Callable[..., list[float | None]]

TIME_LIMIT = 5
"""Seconds a verifier may think about one expression."""

NUMBER = re.compile(r"-?(?:\d+(?:,\d{3})+|\d+)(?:\.\d+)?|-?\.\d+")

PROSE = re.compile(r"(?<![\\\w])(?:[A-Za-z]{2,}|[\d.,]+)\s+[A-Za-z]{2,}")
"""Two words in a row, or a number and its unit, as no formula has."""


def read_completion(completion: Any) -> str:
    """The text of a completion: itself, or the last message of a conversation (text parts joined)."""
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else ""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content or ""


def last_line(text: str) -> str | None:
    """The last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)


def last_number(text: str) -> str | None:
    """The last number, thousands separators removed."""
    found = NUMBER.findall(text)
    return found[-1].replace(",", "") if found else None


def after_hashes(text: str) -> str | None:
    """The number after the last "####", as GSM8K marks its answers."""
    _, marker, tail = text.rpartition("####")
    found = NUMBER.search(tail) if marker else None
    return found.group().replace(",", "") if found else None


def last_character(text: str) -> str | None:
    """The last character that is not blank: the result of a chain, whatever its scratchpad."""
    return text.strip()[-1:] or None


EXTRACTIONS: dict[str, Callable[[str], str | None]] = {
    "whole": str.strip,
    "last_line": last_line,
    "last_number": last_number,
    "after_hashes": after_hashes,
    "last_character": last_character,
}
"""Rule -> the answer it finds in a completion, None where there is none."""


def exact_match(
    prompts: Sequence[Any], completions: Sequence[Any], answer: Sequence[Any], **columns: Any
) -> list[float | None]:
    """1.0 where the whole completion is the answer, blanks at the ends aside; None where the row has no answer.

    An answer that is a number, not text, is compared as a number. See `exact_match_by` for other extractions.
    """
    return _match("whole", completions, answer)


def exact_match_by(rule: str) -> RewardFunction:
    """`exact_match` on what `rule`, one of EXTRACTIONS, finds in the completion; finding nothing is wrong.

    The rule is applied to the answer too, which stands as it is where the rule finds nothing in it.

    Raises:
        RollwiseError: an unknown rule.
    """
    if rule not in EXTRACTIONS:
        raise RollwiseError(f"rewards: exact_match has no extraction {rule!r}; {nearest(rule, EXTRACTIONS)}")
    if rule == "whole":
        return exact_match

    def reward(
        prompts: Sequence[Any], completions: Sequence[Any], answer: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        return _match(rule, completions, answer)

    reward.__name__ = reward.__qualname__ = f"exact_match_{rule}"
    reward.__doc__ = f"1.0 where {rule} of the completion is that of the answer."
    return reward


def math_verify(
    prompts: Sequence[Any], completions: Sequence[Any], answer: Sequence[Any], **columns: Any
) -> list[float | None]:
    """1.0 where the completion's mathematical answer equals the column `answer`, by the `math-verify` package.

    A completion without an answer is wrong. None where the row's own answer can't be parsed, and where the verifier
    fails or needs longer than TIME_LIMIT (kept on the main thread only, by the package's use of signals).
    """
    return [_verify(read_completion(made), gold) for made, gold in zip(completions, answer, strict=True)]


BUILT_IN: dict[str, RewardFunction] = {"exact_match": exact_match, "math_verify": math_verify}


def resolve_reward(name: str) -> RewardFunction:
    """The reward function of a name: "exact_match", "exact_match/<extraction>", "math_verify" or "module:function".

    Modules are looked for in the working directory too.

    Raises:
        RollwiseError: in one line, where there is no such function.
    """
    if ":" not in name:
        base, slash, rule = name.partition("/")
        if base == "exact_match" and slash:
            return exact_match_by(rule)
        if name in BUILT_IN:
            return BUILT_IN[name]
        raise RollwiseError(f"rewards: no built-in {name!r}; {nearest(name, BUILT_IN)} (your own: 'module:function')")
    return load_function(name, "rewards")


def _match(rule: str, completions: Sequence[Any], answers: Sequence[Any]) -> list[float | None]:
    extract = EXTRACTIONS[rule]
    rewards: list[float | None] = []
    for completion, answer in zip(completions, answers, strict=True):
        if answer is None or answer != answer:
            rewards.append(None)
            continue
        numeric = not isinstance(answer, str)
        gold = str(answer) if numeric else (extract(answer) or answer.strip())
        found = extract(read_completion(completion))
        same = found == gold or ((numeric or rule in ("last_number", "after_hashes")) and _same_number(found, gold))
        rewards.append(float(same))
    return rewards


def _same_number(found: str | None, gold: str) -> bool:
    try:
        return found is not None and Decimal(found.replace(",", "")) == Decimal(gold.replace(",", ""))
    except InvalidOperation:
        return False


def _verify(completion: str, answer: Any) -> float | None:
    from math_verify import parse, verify
    from math_verify.errors import TimeoutException

    limit = TIME_LIMIT if threading.current_thread() is threading.main_thread() else None
    try:
        gold = _parse_gold("" if answer is None else str(answer), limit)
        if not gold:
            return None
        found = parse(completion, parsing_timeout=limit, raise_on_error=True)
        return float(verify(gold, found, timeout_seconds=limit, raise_on_error=True)) if found else 0.0
    except (Exception, TimeoutException):
        return None


@functools.lru_cache(maxsize=4096)
def _parse_gold(answer: str, limit: int | None) -> list[Any]:
    """The expressions of a row's answer; unless it is marked or prose, all of it is one expression.

    Without the dollars the parser would take the 2 of a bare "4a-2" for the answer.
    """
    from math_verify import parse

    marked = any(mark in answer.replace("\\$", "") for mark in ("$", "\\boxed", "\\[", "\\("))
    text = answer if marked or PROSE.search(answer) else f"${answer}$"
    return parse(text, fallback_mode="no_fallback", parsing_timeout=limit, raise_on_error=True)
