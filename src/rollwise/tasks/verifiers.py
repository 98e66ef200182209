"""Verifiers by name. Each says success, failure or unknown of one completion, with a reason; none ever raises or hangs.

`judge_all` and `judge_later` are the ways to call one: verifiers that run foreign code (`math_verify`,
`reasoning_gym`, a user's own) run in the processes of `rollwise.tasks.pool`, under limits.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from rollwise.suggest import nearest
from rollwise.tasks.choice import judge_choice, judge_yes_no
from rollwise.tasks.extraction import EXTRACTIONS, last_line, plain_latex
from rollwise.tasks.gym import COLUMN, judge_gym
from rollwise.tasks.mathematics import judge_mathematics, settle
from rollwise.tasks.numeric import judge_number
from rollwise.tasks.verdict import LONGEST, Verdict, failure, read_completion, success, unknown
from rollwise.types import RollwiseError

Judge = Callable[[str, Mapping[str, Any]], Verdict]


@dataclass(frozen=True)
class Verifier:
    """A judge of completions under a name.

    `columns` are those of a row that it reads. `isolated` judges run in a process of their own; `settle` answers
    beforehand, in this one, what needs no such process (None: it does).
    """

    name: str
    judge: Judge
    columns: tuple[str, ...] = ("answer",)
    isolated: bool = False
    settle: Callable[[str, Mapping[str, Any]], Verdict | None] | None = None


def judge_exactly(rule: str) -> Judge:
    """Success where what `rule`, one of EXTRACTIONS, finds in the completion is the answer, to the character.

    The rule is applied to the answer too, which stands as it is where the rule finds nothing in it. A number as answer,
    and numbers found by a rule for numbers, compare as numbers.
    """
    extract = EXTRACTIONS[rule]

    def judge(completion: str, row: Mapping[str, Any]) -> Verdict:
        answer = row.get("answer")
        if answer is None or answer != answer:
            return unknown("the row has no answer")
        numeric = not isinstance(answer, str)
        bare = plain_latex if rule == "boxed" else str.strip
        gold = str(answer) if numeric else (extract(answer) or bare(answer))
        found = extract(completion)
        if found is None:
            return failure(f"nothing found by {rule}")
        same = found == gold or ((numeric or rule in ("last_number", "after_hashes")) and _same_number(found, gold))
        spelled = found[:200]
        return success("the same", spelled) if same else failure("different", spelled)

    return judge


VERIFIERS: dict[str, Verifier] = {
    "exact_match": Verifier("exact_match", judge_exactly("whole")),
    **{
        f"exact_match/{rule}": Verifier(f"exact_match/{rule}", judge_exactly(rule))
        for rule in EXTRACTIONS
        if rule != "whole"
    },
    "numeric": Verifier("numeric", judge_number),
    "multiple_choice": Verifier("multiple_choice", judge_choice, ("answer", "options")),
    "yes_no": Verifier("yes_no", judge_yes_no),
    "math_verify": Verifier("math_verify", judge_mathematics, isolated=True, settle=settle),
    "reasoning_gym": Verifier("reasoning_gym", judge_gym, (COLUMN,), isolated=True),
}
"""Name -> verifier; a user's own, `package.module:function`, has TRL's reward signature."""

PACKAGES = {"math_verify": "math-verify", "reasoning_gym": "reasoning-gym"}
"""Verifier, which is also the module it needs -> the package to install."""


def resolve_verifier(name: str, setting: str = "verifier") -> Verifier:
    """The verifier of a name, or of `package.module:function`.

    Raises:
        RollwiseError: in one line that names `setting`, where there is none.
    """
    if name in VERIFIERS:
        if name in PACKAGES and importlib.util.find_spec(name) is None:
            raise RollwiseError(f"{setting}: {name} needs: pip install {PACKAGES[name]}")
        return VERIFIERS[name]
    if ":" in name:
        from rollwise.imports import load_function

        return Verifier(name, judge_by_function(load_function(name, setting)), columns=(), isolated=True)
    base, slash, rule = name.partition("/")
    if base == "exact_match" and slash:
        raise RollwiseError(f"{setting}: exact_match has no extraction {rule!r}; {nearest(rule, EXTRACTIONS)}")
    plain = [known for known in VERIFIERS if "/" not in known]
    raise RollwiseError(f"{setting}: no built-in {name!r}; {nearest(name, plain)} (your own: 'module:function')")


def judge_by_function(function: Callable[..., Any]) -> Judge:
    """A judge out of a reward function in TRL's signature: 1 is success, 0 failure, None and all else unknown."""

    def judge(completion: str, row: Mapping[str, Any]) -> Verdict:
        import asyncio
        import inspect

        columns = {name: [value] for name, value in row.items() if name != "prompt"}
        values = function(prompts=[row.get("prompt")], completions=[completion], **columns)
        values = asyncio.run(values) if inspect.iscoroutine(values) else values
        if isinstance(values, (dict, set, frozenset, str, bytes)):
            return unknown(f"the function returned {type(values).__name__}, not a list of one value")
        try:
            (value,) = values.tolist() if hasattr(values, "tolist") else values
        except (TypeError, ValueError):
            return unknown(f"the function returned {type(values).__name__}, not a list of one value")
        if value is None or value != value:
            return unknown("the function abstained")
        if isinstance(value, (bool, int, float)) and value in (0, 1):
            answer = (last_line(completion) or "")[:200] or None
            return success("1 by the function", answer) if value else failure("0 by the function", answer)
        return unknown(f"the function returned {value!r:.40}, not 0, 1 or None")

    return judge


def judge_later(verifier: Verifier, completion: Any, row: Mapping[str, Any]) -> Future[Verdict]:
    """The verdict as a future: done already where it is settled here, else once a process of the pool has judged."""
    text = read_completion(completion)
    if not verifier.isolated:
        return _done(verifier.judge(text, row))
    if verifier.settle is not None and (settled := verifier.settle(text, row)) is not None:
        return _done(settled)
    from rollwise.tasks.pool import shared_pool

    columns = verifier.columns or tuple(row)
    return shared_pool().submit(verifier.name, text[-LONGEST:], {name: row.get(name) for name in columns})


def judge_all(verifier: Verifier, completions: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> list[Verdict]:
    """One verdict per completion, in order; isolated ones are judged side by side."""
    futures = [judge_later(verifier, completion, row) for completion, row in zip(completions, rows, strict=True)]
    return [future.result() for future in futures]


def _done(verdict: Verdict) -> Future[Verdict]:
    future: Future[Verdict] = Future()
    future.set_result(verdict)
    return future


def _same_number(found: str, gold: str) -> bool:
    try:
        return Decimal(found.replace(",", "")) == Decimal(gold.replace(",", ""))
    except InvalidOperation:
        return False
