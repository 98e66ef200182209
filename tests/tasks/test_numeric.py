"""Numbers: exact values of every spelling, the final one of a text, and what is no number."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.tasks.numeric import final_number, judge_number
from rollwise.tasks.quantity import read_number
from rollwise.types import Outcome


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("72", 72),
        ("1,234.50", Fraction(2469, 2)),
        ("$1,000", 1000),
        ("\\$6", 6),
        ("900,\\!000", 900000),
        ("3/4", Fraction(3, 4)),
        ("-\\frac{1}{2}", Fraction(-1, 2)),
        ("\\dfrac{-1}{-2}", Fraction(1, 2)),
        ("1e5", 100000),
        ("2.5E-1", Fraction(1, 4)),
        ("\u22123", -3),
        ("50%", 50),
        (".5", Fraction(1, 2)),
    ],
)
def test_a_number_has_the_same_exact_value_in_every_spelling(text: str, value: Fraction | int) -> None:
    assert read_number(text) == value


@pytest.mark.parametrize(
    "text", ["", "x", "1/0", "1 apple", "1e9999", "9" * 401, "1e-401", "\\frac{1}{0}", "nan", "inf"]
)
def test_what_is_no_number_or_a_trap_has_no_value(text: str) -> None:
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("A: 90,000", 90000),
        ("48/2 = 24\n#### 72\nand 5 more", 72),
        ("so \\boxed{x = 5}, not 7", 5),
        ("**Answer:** 2 + 3 = 5", 5),
        ("To find the answer, add 3 and 4. She has 7.", 7),
        ("10-3", 3),
        ("it is -3", -3),
        ("\\boxed{\\frac{1}{2}}", Fraction(1, 2)),
        ("we get $1,234.50.", Fraction(2469, 2)),
        ("The answer is 3 apples out of 8.", None),
        ("no idea", None),
    ],
)
def test_the_final_number_is_the_marked_one_else_the_last(text: str, number: Fraction | int | None) -> None:
    assert final_number(text) == number


NO_PLAIN_NUMBER = [
    "42!",
    "42^2",
    "42x",
    "42 x",
    "42\\pi",
    "\\sqrt{42}",
    "42 + 1",
    "\\frac{42}{5}+1",
    "-(42)",
    "42 \\cdot 10^3",
    "42 \\text{ million}",
    "42:17",
    "42,17",
    "(42,17)",
    "42 \\text{ or } 17",
    "\\neq 42",
    "\\text{not } 42",
    "\\pm 42",
    "42i",
    "2\\cdot 42",
    "x=42,y=17",
    "42 \\pmod 5",
    "{42}^{2}",
    "x>42",
] + ["42," * 1000 + "17"]
HEDGES = [
    "The answer is minus 42",
    "The answer is 42 or 17",
    "The answer is not 42, it is 17.",
    "The answer isn't 42",
    "The answer is 42. Wait, it is 17",
    "The answer is at least 42",
    "It is not 42.",
    "It is 17 or 42",
    "#### 42 or 17",
]


@pytest.mark.parametrize("text", [f"\\boxed{{{box}}}" for box in NO_PLAIN_NUMBER] + HEDGES, ids=lambda text: text[:20])
def test_a_number_with_others_under_an_operation_or_denied_is_wrong(text: str) -> None:
    assert judge_number(text, {"answer": "42"}).outcome is Outcome.FAILURE


DRESSED = [
    "\\boxed{x = 42}",
    "\\boxed{42\\text{ apples}}",
    "\\boxed{\\$42}",
    "\\boxed{42\\text{ cm}^2}",
    "\\boxed{6 \\cdot 7 = 42}",
    "\\boxed{42^\\circ}",
    "\\boxed{4.2 \\times 10^1}",
    "The answer is $42.",
    "The answer is 42!",
    "The answer is that she has 42 apples.",
    "#### 42 dollars",
    "The answer is 42, because 6*7=42.",
    "The answer is 42, not 17.",
    "The answer is not 17, but 42.",
    "The answer is 42 percent",
]


@pytest.mark.parametrize("text", DRESSED)
def test_units_currencies_and_reasons_leave_a_number_as_it_is(text: str) -> None:
    assert judge_number(text, {"answer": "42"}).outcome is Outcome.SUCCESS


@given(
    st.integers(-(10**12), 10**12), st.sampled_from(["#### {}", "\\boxed{{{}}}", "The answer is {:,}.", "7, then {}"])
)
def test_any_whole_number_is_right_against_itself_and_wrong_against_the_next(number: int, text: str) -> None:
    said = text.format(number)
    assert judge_number(said, {"answer": str(number)}).outcome is Outcome.SUCCESS
    assert judge_number(said, {"answer": number + 1}).outcome is Outcome.FAILURE


def test_equal_numbers_are_spelled_alike_and_reasons_are_given() -> None:
    verdicts = [judge_number(text, {"answer": "0.5"}) for text in ("1/2", "\\boxed{\\frac{2}{4}}", ".50", "none", "2")]
    assert [verdict.answer for verdict in verdicts] == ["1/2", "1/2", "1/2", None, "2"]
    assert [verdict.reason for verdict in verdicts[2:]] == ["equal numbers", "no number found", "another number"]


@pytest.mark.parametrize("answer", [None, float("nan"), "", "many"])
def test_a_row_without_a_number_leaves_the_outcome_unknown(answer: object) -> None:
    assert judge_number("3", {"answer": answer}).outcome is Outcome.UNKNOWN
