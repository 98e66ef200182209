"""The answer of a completion in a spelling that equal answers share, for votes where nobody knows the right one.

answer = read_answers("marked")
answer("so it is 0.50.\\nThe answer is 1/2.")      # "1/2"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollwise.imports import first_line, load_function
from rollwise.suggest import nearest
from rollwise.tasks.extraction import EXTRACTIONS, boxed, final_answer, last_line
from rollwise.tasks.numeric import final_number
from rollwise.tasks.quantity import read_number
from rollwise.tasks.verdict import LONGEST, read_completion
from rollwise.types import RollwiseError

LONGEST_ANSWER = 200
"""Characters of an answer that count; a longer one is no answer but the rest of a text."""


def marked(text: str) -> str | None:
    """What is marked as the answer (boxed, after "####" or "the answer is"), else the last number, else the last line."""
    box = boxed(text)
    if box:
        return box
    said = final_answer(text)
    if said and not any(letter.isdigit() for letter in said):
        return said
    number = final_number(text)
    return str(number) if number is not None else said or last_line(text)


RULES: dict[str, Callable[[str], str | None]] = {"marked": marked, **EXTRACTIONS}
"""Rules by name; `marked` does for most prompts."""
AS_NUMBERS = ("marked", "last_number", "after_hashes")
"""Rules whose numbers are spelled alike: 0.5 and 1/2 are one answer."""


def read_answers(rule: str) -> Callable[[Any], str]:
    """The function from a completion (text, or the messages of a conversation) to its answer, "" where it gives none.

    `rule` is one of `RULES`, or `package.module:function`, which gets the text and returns text or None.

    Raises:
        RollwiseError: no such rule; from the function that is returned, what a function of one's own raised or returned.
    """
    if ":" in rule:
        return _own(rule, load_function(rule, "answers"))
    if rule not in RULES:
        raise RollwiseError(f"answers: no {rule!r}; {nearest(rule, RULES)}, or package.module:function")
    find = RULES[rule]

    def answer(completion: Any) -> str:
        found = find(read_completion(completion)[-LONGEST:])
        if not found:
            return ""
        number = read_number(found) if rule in AS_NUMBERS else None
        return str(found if number is None else number)[:LONGEST_ANSWER]

    return answer


def _own(rule: str, function: Callable[..., Any]) -> Callable[[Any], str]:
    def answer(completion: Any) -> str:
        try:
            found = function(read_completion(completion))
        # whatever a function of the user's raises is theirs to mend
        except Exception as error:
            raise RollwiseError(f"answers: {rule} raised {type(error).__name__}: {first_line(error)}") from error
        if found is not None and not isinstance(found, str):
            raise RollwiseError(f"answers: {rule} returned {type(found).__name__}; return text, or None for no answer")
        return found or ""

    return answer
