"""Hostile answers: every verifier gives a verdict on each, and the pool serves honest answers afterwards."""

from __future__ import annotations

import pytest
from hostile import GOLDS, draw_hostile

from rollwise.tasks.verifiers import VERIFIERS, judge_all
from rollwise.types import Outcome

LIGHT = ["exact_match", "exact_match/boxed", "exact_match/final_answer", "numeric", "multiple_choice", "yes_no"]


@pytest.mark.parametrize("name", LIGHT)
def test_verifiers_in_this_process_judge_hostile_answers(name: str) -> None:
    answers = draw_hostile(300, seed=1)
    judged_as_one_of_three(name, answers)


def test_mathematics_judges_hostile_answers() -> None:
    answers = draw_hostile(60, seed=2)
    judged_as_one_of_three("math_verify", answers)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LIGHT, "math_verify"])
def test_ten_thousand_hostile_answers_are_judged(name: str) -> None:
    answers = draw_hostile(10_000, seed=3)
    judged_as_one_of_three(name, answers)


def judged_as_one_of_three(name: str, answers: list[str]) -> None:
    """A verdict each, with a reason, none longer than an answer; honest ones are still right."""
    golds = {"multiple_choice": ["A"], "yes_no": ["yes"], "numeric": ["5", "1/2", "1,000"]}.get(name, GOLDS)
    rows = [{"answer": golds[index % len(golds)]} for index in range(len(answers))]
    verdicts = judge_all(VERIFIERS[name], answers, rows)
    assert len(verdicts) == len(answers)
    assert all(isinstance(verdict.outcome, Outcome) and verdict.reason for verdict in verdicts)
    assert all(len(verdict.answer or "") <= 400 for verdict in verdicts)
    known = [verdict for verdict in verdicts if verdict.outcome is not Outcome.UNKNOWN]
    assert known
    gold = {"multiple_choice": "A", "yes_no": "yes"}.get(name, "5")
    honest = {"exact_match": gold, "exact_match/boxed": f"\\boxed{{{gold}}}"}.get(name, f"The answer is {gold}.")
    assert judge_all(VERIFIERS[name], [honest], [{"answer": gold}])[0].outcome is Outcome.SUCCESS
