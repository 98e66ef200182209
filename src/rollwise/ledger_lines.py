"""The lines of a ledger: what each holds, how it is made, and the check that a line read back is one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rollwise.types import Outcome, Rollout

OUTCOMES = {outcome.value for outcome in Outcome}


def wave_line(step: int, wave: int, rollouts: Iterable[Rollout], digest: str) -> dict[str, Any]:
    """The line of a wave issued on the decision with that digest."""
    issued = [
        {"id": r.id, "prompt_id": r.prompt_id, "group_id": r.group_id, "belief": list(r.belief)} for r in rollouts
    ]
    return {"type": "wave", "step": step, "wave": wave, "digest": digest, "rollouts": issued}


def rollout_line(step: int, rollout: Rollout) -> dict[str, Any]:
    """The line of one observed rollout."""
    return {
        "type": "rollout",
        "step": step,
        "id": rollout.id,
        "prompt_id": rollout.prompt_id,
        "group_id": rollout.group_id,
        "wave": rollout.wave,
        "outcome": rollout.outcome.value,
        "reward": None if rollout.reward is None else float(rollout.reward),
        "answer": rollout.answer,
        "tokens": int(rollout.tokens),
        "logprob": None if rollout.logprob is None else float(rollout.logprob),
        "belief": list(rollout.belief),
        "gradient_norm": None if rollout.gradient_norm is None else float(rollout.gradient_norm),
    }


def read_rollout(line: dict[str, Any]) -> Rollout:
    """The rollout of one ledger line."""
    names = ("id", "prompt_id", "group_id", "wave", "reward", "answer", "tokens", "logprob", "gradient_norm")
    fields = {key: line[key] for key in names}
    return Rollout(**fields, outcome=Outcome(line["outcome"]), belief=(line["belief"][0], line["belief"][1]))


def is_cut_short(line: bytes) -> bool:
    """Whether a last line without its end can be the start of a ledger line; anything else is somebody else's file."""
    start = b'{"type": "'
    return line.startswith(start) or start.startswith(line)


def read_line(raw: bytes) -> dict[str, Any]:
    """One line of a ledger file, every field of the type its kind has.

    Raises:
        ValueError: it is none; the message says why.
    """
    line = json.loads(raw)
    if not isinstance(line, dict) or line.get("type") not in _FIELDS:
        raise ValueError(f"its type is none of {', '.join(_FIELDS)}")
    if line["type"] == "rollout":
        line.setdefault("gradient_norm", None)  # absent from ledgers of earlier versions
    _check(line, _FIELDS[line["type"]])
    for entry in line.get("rollouts", []) if line["type"] == "wave" else []:
        if not isinstance(entry, dict):
            raise ValueError("rollouts holds what is no rollout")
        _check(entry, _ISSUED)
    return line


def _check(line: dict[str, Any], fields: Mapping[str, Callable[[Any], bool]]) -> None:
    for name, fits in fields.items():
        if name not in line:
            raise ValueError(f"it has no {name}")
        if not fits(line[name]):
            raise ValueError(f"{name} cannot be {str(line[name])[:40]!r}")


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _belief(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_number(x) and x > 0 for x in value)


def _maybe(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


_ISSUED = {"id": _text, "prompt_id": _text, "group_id": _text, "belief": _belief}
_FIELDS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "wave": {"step": _count, "wave": _count, "digest": _text, "rollouts": lambda value: isinstance(value, list)},
    "rollout": {
        "step": _count,
        **_ISSUED,
        "wave": _count,
        "outcome": lambda value: isinstance(value, str) and value in OUTCOMES,
        "reward": _maybe(_number),
        "answer": _maybe(_text),
        "tokens": _count,
        "logprob": _maybe(_number),
        "gradient_norm": _maybe(_number),
    },
    "step": {"step": _count, "rollouts": _count, "metrics": lambda value: isinstance(value, dict)},
    "rewind": {"step": _count, "rollouts_lost": _count},
}
