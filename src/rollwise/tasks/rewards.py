"""Built-in rewards in TRL's signature, `(prompts, completions, **columns) -> list of 1.0, 0.0 or None for unknown`.

Each is a verifier of `rollwise.tasks.verifiers` of the same name. Unknown is what can't be judged: no answer to compare
with, or a verifier that failed or ran out of time or memory; it never counts as wrong.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from rollwise.imports import load_function
from rollwise.tasks.extraction import EXTRACTIONS
from rollwise.tasks.gym import COLUMN
from rollwise.tasks.verdict import Verdict
from rollwise.tasks.verifiers import VERIFIERS, Verifier, judge_all, resolve_verifier
from rollwise.types import Outcome, RollwiseError

__all__ = [
    "EXTRACTIONS",
    "RewardFunction",
    "exact_match",
    "exact_match_by",
    "math_verify",
    "multiple_choice",
    "numeric",
    "resolve_reward",
    "yes_no",
]

RewardFunction = Callable[..., list[float | None]]

log = logging.getLogger(__name__)
_warned: set[tuple[str, str]] = set()


def exact_match(
    prompts: Sequence[Any], completions: Sequence[Any], answer: Sequence[Any], **columns: Any
) -> list[float | None]:
    """1.0 where the whole completion is the answer, blanks at the ends aside; None where the row has no answer.

    An answer that is a number, not text, is compared as a number. See `exact_match_by` for other extractions.
    """
    return score(VERIFIERS["exact_match"], completions, answer=answer)


def exact_match_by(rule: str) -> RewardFunction:
    """`exact_match` on what `rule`, one of EXTRACTIONS, finds in the completion; finding nothing is wrong.

    The rule is applied to the answer too, which stands as it is where the rule finds nothing in it.

    Raises:
        RollwiseError: an unknown rule.
    """
    if rule == "whole":
        return exact_match
    verifier = resolve_verifier(f"exact_match/{rule}", "rewards")

    def reward(
        prompts: Sequence[Any], completions: Sequence[Any], answer: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        return score(verifier, completions, answer=answer)

    reward.__name__ = reward.__qualname__ = f"exact_match_{rule}"
    reward.__doc__ = f"1.0 where {rule} of the completion is that of the answer."
    return reward


def numeric(
    prompts: Sequence[Any], completions: Sequence[Any], answer: Sequence[Any], **columns: Any
) -> list[float | None]:
    """1.0 where the final number (boxed, after "####" or "the answer is", else the last) has the value of `answer`."""
    return score(VERIFIERS["numeric"], completions, answer=answer)


def multiple_choice(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    answer: Sequence[Any],
    options: Sequence[Any] | None = None,
    **columns: Any,
) -> list[float | None]:
    """1.0 where the completion chooses the letter in `answer`; with a column `options` it may quote the option."""
    return score(VERIFIERS["multiple_choice"], completions, answer=answer, options=options)


def yes_no(
    prompts: Sequence[Any], completions: Sequence[Any], answer: Sequence[Any], **columns: Any
) -> list[float | None]:
    """1.0 where the completion says yes or no, true or false, as `answer` does."""
    return score(VERIFIERS["yes_no"], completions, answer=answer)


def math_verify(
    prompts: Sequence[Any], completions: Sequence[Any], answer: Sequence[Any], **columns: Any
) -> list[float | None]:
    """1.0 where the completion's mathematical answer equals the column `answer`, by the `math-verify` package.

    A completion without an answer is wrong. None where the row's own answer can't be parsed, and where the verifier
    fails or needs longer than `pool.TIME_LIMIT`. It runs in processes of its own, so in any thread.
    """
    return score(VERIFIERS["math_verify"], completions, answer=answer)


def reasoning_gym(
    prompts: Sequence[Any], completions: Sequence[Any], reasoning_gym: Sequence[Any], **columns: Any
) -> list[float | None]:
    """1.0 where the scorer of the row's reasoning-gym data set gives full marks."""
    return score(VERIFIERS["reasoning_gym"], completions, **{COLUMN: reasoning_gym})


BUILT_IN: dict[str, RewardFunction] = {
    function.__name__: function
    for function in (exact_match, numeric, multiple_choice, yes_no, math_verify, reasoning_gym)
}


def resolve_reward(name: str) -> RewardFunction:
    """The reward function of a name: one of BUILT_IN, "exact_match/<extraction>" or "module:function".

    Modules are looked for in the working directory too.

    Raises:
        RollwiseError: in one line, where there is no such function.
    """
    if ":" in name:
        return load_function(name, "rewards")
    base, _, rule = name.partition("/")
    if base == "exact_match" and rule:
        return exact_match_by(rule)
    resolve_verifier(name, "rewards")
    return BUILT_IN[name]


def score(verifier: Verifier, completions: Sequence[Any], **columns: Sequence[Any] | None) -> list[float | None]:
    """The rewards of `completions` by a verifier; the first unknown of each kind is said in the log.

    Raises:
        RollwiseError: columns of another length than the completions.
    """
    held = {name: list(values) for name, values in columns.items() if values is not None}
    for name, values in held.items():
        if len(values) != len(completions):
            raise RollwiseError(
                f"rewards: {verifier.name} got {len(completions)} completions and {len(values)} of column {name!r}"
            )
    rows = [{name: values[index] for name, values in held.items()} for index in range(len(completions))]
    verdicts = judge_all(verifier, completions, rows)
    _report(verifier, verdicts)
    return [verdict.reward for verdict in verdicts]


def _report(verifier: Verifier, verdicts: Sequence[Verdict]) -> None:
    reasons = Counter(verdict.reason for verdict in verdicts if verdict.outcome is Outcome.UNKNOWN)
    for reason, count in reasons.items():
        kind = (verifier.name, reason[:30])
        if kind not in _warned:
            _warned.add(kind)
            log.warning("%s left %d of %d outcomes unknown: %s", verifier.name, count, len(verdicts), reason)
