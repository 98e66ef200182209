"""Votes over answers where nobody knows the right one: who leads, and the leader as the label of its group.

An answer is compared as text, so whoever grades reports a canonical form ("1/2" for 0.5). None says nothing of a rollout;
"" says that it came back without an answer, which votes for nothing and agrees with nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from rollwise.suggest import nearest
from rollwise.types import Outcome, Rollout, RollwiseError

LABELS = ("verifier", "majority")


def check_labels(labels: str) -> None:
    """Raise `RollwiseError` unless `labels` is one of `LABELS`."""
    if labels not in LABELS:
        raise RollwiseError(f"labels: no {labels!r}; {nearest(str(labels), LABELS)}")


def leading_votes(ballot: Counter[str]) -> tuple[int, int]:
    """Votes of the leading and of the second answer, 0 where there is none."""
    lead, second = 0, 0
    for count in ballot.values():
        if count > lead:
            lead, second = count, lead
        elif count > second:
            second = count
    return lead, second


def label_by_majority(rows: Iterable[Rollout]) -> tuple[Rollout, ...]:
    """Rollouts with outcome and reward by agreement with the answer most of their group gave (ties: the first given).

    A rollout whose answer is None, or whose group gave no answer at all, becomes unknown.
    """
    rows = tuple(rows)
    ballots: dict[str, Counter[str]] = {}
    for row in rows:
        if row.answer:
            ballots.setdefault(row.group_id, Counter())[row.answer] += 1
    leaders = {group: ballot.most_common(1)[0][0] for group, ballot in ballots.items()}
    return tuple(_labelled(row, leaders.get(row.group_id)) for row in rows)


def settle_labels(labels: str, rows: tuple[Rollout, ...]) -> tuple[tuple[Rollout, ...], dict[str, float]]:
    """The rollouts with the outcomes that count, and `label_agreement` where a verifier looked on as well."""
    if labels == "verifier":
        return rows, {}
    labelled = label_by_majority(rows)
    agreed = agreement(labelled, rows)
    return labelled, {} if np.isnan(agreed) else {"label_agreement": agreed}


def agreement(labelled: Sequence[Rollout], graded: Sequence[Rollout]) -> float:
    """Share of rollouts with the outcome a verifier gave, among those of which both know one; NaN for none."""
    pairs = [(a.outcome, b.outcome) for a, b in zip(labelled, graded, strict=True)]
    known = [a is b for a, b in pairs if Outcome.UNKNOWN not in (a, b)]
    return float(np.mean(known)) if known else float("nan")


def _labelled(row: Rollout, leader: str | None) -> Rollout:
    if row.answer is None or leader is None:
        return replace(row, outcome=Outcome.UNKNOWN, reward=None)
    agrees = row.answer == leader
    return replace(row, outcome=Outcome.SUCCESS if agrees else Outcome.FAILURE, reward=float(agrees))
