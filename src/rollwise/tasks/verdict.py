"""What a verifier says of one completion: success, failure or unknown, with the reason and the answer it read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rollwise.types import Outcome

LONGEST = 20_000
"""Characters of a completion that are read, its last ones: an answer stands at the end."""


@dataclass(frozen=True)
class Verdict:
    """The judgement of one completion.

    `answer` is what was read in it, in a spelling that equal answers share (votes are counted by it); None for nothing.
    """

    outcome: Outcome
    reason: str
    answer: str | None = None

    @property
    def reward(self) -> float | None:
        """1.0, 0.0, or None for unknown."""
        return {Outcome.SUCCESS: 1.0, Outcome.FAILURE: 0.0, Outcome.UNKNOWN: None}[self.outcome]

    def as_json(self) -> dict[str, Any]:
        """Plain data that `Verdict.read` takes back."""
        return asdict(self) | {"outcome": self.outcome.value}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Verdict:
        """The verdict of `as_json`."""
        return cls(Outcome(data["outcome"]), str(data["reason"]), data["answer"])


def success(reason: str, answer: str | None) -> Verdict:
    """A right answer."""
    return Verdict(Outcome.SUCCESS, reason, answer)


def failure(reason: str, answer: str | None = None) -> Verdict:
    """A wrong answer, or none."""
    return Verdict(Outcome.FAILURE, reason, answer)


def unknown(reason: str, answer: str | None = None) -> Verdict:
    """No judgement: nothing to compare with, or a verifier that failed; never counted as wrong."""
    return Verdict(Outcome.UNKNOWN, reason, answer)


def is_missing(gold: Any) -> bool:
    """Whether a row has nothing to compare with: None, NaN or blank text."""
    if gold is None or (isinstance(gold, float) and gold != gold):
        return True
    return isinstance(gold, str) and not gold.strip()


def read_completion(completion: Any) -> str:
    """The text of a completion: itself, or the last message of a conversation (text parts joined); else nothing."""
    if isinstance(completion, str):
        return completion
    last = completion[-1] if isinstance(completion, (list, tuple)) and completion else completion
    content = last.get("content") if isinstance(last, Mapping) else last
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""
