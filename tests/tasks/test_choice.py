"""Choices: the letter however it is dressed, options quoted, no answer where two are given; yes and no."""

from __future__ import annotations

from typing import Any

import pytest

from rollwise.tasks.choice import find_choice, find_yes_no, judge_choice, judge_yes_no
from rollwise.types import Outcome

OPTIONS = ["All Cantonese are southerners.", "Some Cantonese love chili.", "None", "Neither"]


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        (" (c) no, (C)", "C"),
        ("D. because of that", "D"),
        ("A) and that is it", "A"),
        ("Not (A), not (B). The answer is (C).", "C"),
        ("So \\boxed{\\text{D}}", "D"),
        ("\\boxed{B. Some}", "B"),
        ("**Answer: B**", "B"),
        ("Thinking about A.\nFinal answer:\nC", "C"),
        ("A dog barks. So it must be **C**", "C"),
        ("Option D is right", "D"),
        ("The answer is Some Cantonese love chili.", "B"),
        ("all cantonese are southerners.", "A"),
        ("A or B", None),
        ("The answer is (A) or (B)", None),
        ("\\boxed{A, C}", None),
        ("I cannot tell", None),
        ("", None),
        ("The answer is E", None),
    ],
)
def test_the_choice_is_read_however_it_is_dressed(text: str, letter: str | None) -> None:
    assert find_choice(text, OPTIONS)[0] == letter


@pytest.mark.parametrize(
    ("completion", "row", "outcome"),
    [
        ("(B)", {"answer": "B"}, Outcome.SUCCESS),
        ("(B)", {"answer": "C", "options": OPTIONS}, Outcome.FAILURE),
        ("(E)", {"answer": "e", "options": ["a"] * 5}, Outcome.SUCCESS),
        ("B", {"answer": None}, Outcome.UNKNOWN),
        ("B", {"answer": "E"}, Outcome.UNKNOWN),
        ("B", {"answer": 1}, Outcome.UNKNOWN),
    ],
)
def test_a_choice_is_judged_by_its_letter(completion: str, row: dict[str, Any], outcome: Outcome) -> None:
    assert judge_choice(completion, row).outcome is outcome


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Yes, because it isn't no.", "yes"),
        ("It could be yes. The answer is no.", "no"),
        ("\\boxed{False}", "no"),
        ("He was married.\nSo the claim is true.", "yes"),
        ("yes or no", None),
        ("Yes and no", None),
        ("Yes or no? Hard to say.", None),
        ("\\boxed{yes \\text{ or } no}", None),
        ("\\boxed{yes,yes,no}", None),
        ("True or false: false", "no"),
        ("Yes... actually, the answer should be: No", "no"),
        ("yes no " * 50_000, None),
        ("No wait, yes.", None),
        ("The answer is not yes, it is no.", "no"),
        ("It is not true", "no"),
        ("Yes, there is no doubt.", "yes"),
        ("It is yes and no at once", None),
        ("nobody knows", None),
    ],
)
def test_yes_and_no_are_read_where_they_are_meant(text: str, said: str | None) -> None:
    assert find_yes_no(text)[0] == said


@pytest.mark.parametrize(
    ("text", "options", "letter"),
    [
        ("\\boxed{100}", "5 10 15 20", None),
        ("The answer is 1000", "5 10 15 20", None),
        ("I computed 100 as the result.", "5 10 15 20", None),
        ("\\boxed{10^2}", "5 10 15 20", None),
        ("The answer is 10 or 15", "5 10 15 20", None),
        ("5 and 15", "5 10 15 20", None),
        ("\\boxed{x=10}", "5 10 15 20", "B"),
        ("\\boxed{concatenate}", "cat dog", None),
        ("\\boxed{\\text{a cat}}", "cat dog", "A"),
        ("\\text{hello} exit", "x y", None),
        ("\\boxed{2}", "x y", None),
        ("\\boxed{x}", "x y", "A"),
        ("\\boxed{B \\text{ or } A}", "p q", None),
        ("\\boxed{B\\text{ and }A}", "p q", None),
        ("The answer is not B.", "p q", None),
        ("Not B.", "p q", None),
        ("B is wrong", "p q", None),
        ("The answer is B, not A.", "p q", "B"),
        ("The answer is not A, it is B.", "p q", "B"),
    ],
)
def test_options_are_whole_words_and_what_is_denied_or_open_is_no_choice(
    text: str, options: str, letter: str | None
) -> None:
    assert find_choice(text, options.split())[0] == letter


def test_letters_and_denials_inside_an_option_are_the_options() -> None:
    options = ["Stock A rises, but stock B does not rise", "Stock A does not rise, stock B rises"]
    assert [find_choice(f"The answer is {option}", options)[0] for option in options] == ["A", "B"]


def test_answers_may_be_words_or_booleans() -> None:
    assert judge_yes_no("No.", {"answer": False}).outcome is Outcome.SUCCESS
    assert judge_yes_no("No.", {"answer": "true"}).outcome is Outcome.FAILURE
    assert judge_yes_no("No.", {"answer": "maybe"}).outcome is Outcome.UNKNOWN
