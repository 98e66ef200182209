"""Numbers: exact values of every spelling, the final one of a text, and what is no number."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.tasks.numeric import final_number, judge_number, read_number
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
        ("A: 90,000", "90,000"),
        ("48/2 = 24\n#### 72\nand 5 more", "72"),
        ("so \\boxed{x = 5}, not 7", "5"),
        ("The answer is 3 apples out of 8.", "3"),
        ("**Answer:** 2 + 3 = 5", "5"),
        ("To find the answer, add 3 and 4. She has 7.", "7"),
        ("10-3", "3"),
        ("it is -3", "-3"),
        ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("we get $1,234.50.", "$1,234.50"),
        ("no idea", None),
    ],
)
def test_the_final_number_is_the_marked_one_else_the_last(text: str, number: str | None) -> None:
    assert final_number(text) == number


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
