"""Answers as votes count them: one spelling for equal answers, nothing for none, faults of one's own function named."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollwise.tasks.answers import RULES, read_answers
from rollwise.types import RollwiseError


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("so it is 0.50.\nThe answer is 1/2.", "1/2"),
        (r"\boxed{\dfrac{1}{2}} and 3", "1/2"),
        (r"\boxed{0.5}", "1/2"),
        (r"\boxed{ x^2 + 1 }", "x^2+1"),
        ("2 + 2 is 4\n#### 1,234", "1234"),
        ("The answer is 7 apples", "7"),
        ("Final answer: yes", "yes"),
        ("first 3, then 26", "26"),
        ("it is\nblue", "blue"),
        ("  \n", ""),
        ([{"role": "assistant", "content": "The answer is 1/2."}], "1/2"),
    ],
)
def test_what_is_marked_as_the_answer_goes_before_the_last_number(completion: object, answer: str) -> None:
    assert read_answers("marked")(completion) == answer


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_votes_for_what_is_not_there(rule: str) -> None:
    assert read_answers(rule)("") == ""
    assert len(read_answers(rule)("9" * 50_000)) <= 200


def test_rules_for_text_keep_numbers_apart_that_are_spelled_apart() -> None:
    assert read_answers("whole")(" 06 ") == "06"
    assert read_answers("last_number")("06") == read_answers("last_number")("6.0") == "6"


def test_a_function_of_ones_own_is_used_and_named_where_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_answers.py").write_text(
        "def last(text):\n    return text[-1:] or None\n"
        "def broken(text):\n    raise KeyError('no answer')\n"
        "def number(text):\n    return 7\n"
    )
    own = read_answers("own_answers:last")
    assert (own([{"role": "assistant", "content": "ab"}]), own("")) == ("b", "")
    with pytest.raises(RollwiseError, match=r"^answers: own_answers:broken raised KeyError: 'no answer'$"):
        read_answers("own_answers:broken")("x")
    with pytest.raises(RollwiseError, match=r"^answers: own_answers:number returned int; return text, or None"):
        read_answers("own_answers:number")("x")


@pytest.mark.parametrize(
    ("rule", "message"),
    [("boxd", "answers: no 'boxd'; did you mean 'boxed'"), ("no_such_module:f", "answers: 'no_such_module:f'")],
)
def test_an_unknown_rule_is_refused(rule: str, message: str) -> None:
    with pytest.raises(RollwiseError, match=message):
        read_answers(rule)
