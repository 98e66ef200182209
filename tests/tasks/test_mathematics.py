"""Mathematical answers: values rather than spellings, what is settled without a parser, traps, shared spellings."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy

from rollwise.tasks.mathematics import find_trap, gold_text, judge_mathematics, parse_gold, settle, spell
from rollwise.types import Outcome


@pytest.mark.parametrize(
    ("completion", "answer", "outcome"),
    [
        ("\\boxed{0.5}", "\\frac{1}{2}", Outcome.SUCCESS),
        ("\\boxed{2 + 2x}", "2(x+1)", Outcome.SUCCESS),
        ("\\boxed{[2, 3)}", "[2,3)", Outcome.SUCCESS),
        ("\\boxed{4 \\times 10^{33}}", "4e33", Outcome.SUCCESS),
        ("first \\boxed{1}, finally \\boxed{2}", "2", Outcome.SUCCESS),
        ("first \\boxed{2}, finally \\boxed{1}", "2", Outcome.FAILURE),
        ("\\boxed{84, 69}", ["$69$,$84$"], Outcome.SUCCESS),
        ("\\boxed{69}", ["$69$,$84$"], Outcome.FAILURE),
        ("\\boxed{\\text{(A)}}", "\\text{(A)}", Outcome.SUCCESS),
        ("The answer is 1,072.", "1072", Outcome.SUCCESS),
        ("nothing at all", "1072", Outcome.FAILURE),
        ("\\boxed{1}", "words that hold nothing", Outcome.UNKNOWN),
        ("\\boxed{\\neq 42}", "42", Outcome.FAILURE),
        ("The answer is not 42, it is 17.", "42", Outcome.FAILURE),
        ("The answer is not 17, it is 42.", "42", Outcome.SUCCESS),
        ("The answer is minus 42", "42", Outcome.FAILURE),
        ("The answer is 42 or 17", "42", Outcome.FAILURE),
        ("It is 17 or 42", "42", Outcome.FAILURE),
        ("\\boxed{42 \\text{ million}}", "42", Outcome.FAILURE),
        ("\\boxed{1}", None, Outcome.UNKNOWN),
        ("\\boxed{1}", [], Outcome.UNKNOWN),
    ],
)
def test_values_are_compared_not_spellings(completion: str, answer: object, outcome: Outcome) -> None:
    assert judge_mathematics(completion, {"answer": answer}).outcome is outcome


@pytest.mark.parametrize(
    ("completion", "answer", "outcome"),
    [
        ("\\boxed{\\dfrac{1}{2}}", "\\frac{1}{2}", Outcome.SUCCESS),
        ("\\boxed{6}", "7", Outcome.FAILURE),
        ("#### 1,072", "1072", Outcome.SUCCESS),
        ("\\boxed{9^{9^{9^9}}}", "7", Outcome.FAILURE),
    ],
)
def test_what_needs_no_parser_is_settled_at_once(completion: str, answer: str, outcome: Outcome) -> None:
    verdict = settle(completion, {"answer": answer})
    assert verdict is not None
    assert verdict.outcome is outcome


@pytest.mark.parametrize(("completion", "answer"), [("\\boxed{0.333333}", "1/3"), ("\\boxed{x}", "y")])
def test_what_a_parser_might_see_otherwise_is_left_to_it(completion: str, answer: str) -> None:
    assert settle(completion, {"answer": answer}) is None


@pytest.mark.parametrize(
    "text",
    [
        "1" * 2000,
        "{" * 13,
        "1,2," * 40,
        "10^{10^{10}}",
        "2^{3^{4^{5}}}",
        "(x+y)^{300}",
        "123456!",
        "x^{9999999}",
        "5!!!",
    ],
)
def test_traps_are_named_unless_the_answer_is_as_large(text: str) -> None:
    assert find_trap(text, "7") is not None
    assert find_trap(text, text) is None


@pytest.mark.parametrize("text", ["10^{100}", "2^{2^{3}}", "2^{x^{2}}", "100!", "((((1))))", "10^{-16}", "n^2"])
def test_answers_of_a_usual_size_are_no_traps(text: str) -> None:
    assert find_trap(text, "7") is None


def test_equal_values_are_spelled_alike() -> None:
    assert spell(sympy.Rational(1, 2)) == spell(sympy.Float("0.5")) == spell(Fraction(1, 2)) == "0.5"
    assert spell(sympy.Integer(7)) == spell(Fraction(7)) == spell(sympy.Float(7)) == "7"
    assert spell(sympy.Symbol("x") + 1) == "x + 1"
    assert spell(Fraction(10) ** 400) == str(10**400)[:200]


def test_a_bare_formula_is_taken_whole_and_prose_is_searched() -> None:
    assert parse_gold("4a-2") == parse_gold("$4a-2$")
    assert parse_gold("72 clips")[0] == 72
    assert gold_text(["$a$", "$b$"]) == "$a$, $b$"
