"""Rewards: agreement with published labels, unknown kept apart from wrong, every completion form, clear refusals."""

from __future__ import annotations

import gzip
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.tasks.rewards import (
    BUILT_IN,
    exact_match,
    exact_match_by,
    math_verify,
    multiple_choice,
    resolve_reward,
    yes_no,
)
from rollwise.types import RollwiseError


def score(reward: Any, completion: Any, answer: Any) -> float | None:
    """One reward, through the signature the trainer calls."""
    (value,) = reward(prompts=["?"], completions=[completion], answer=[answer], id=["a column more"])
    return value


@pytest.mark.parametrize(
    ("completion", "answer", "expected"),
    [
        ("26", "26", 1.0),
        (" 26\n", "26 ", 1.0),
        ("260", "26", 0.0),
        ("", "26", 0.0),
        ("026", "26", 0.0),
        ("42.0", 42, 1.0),
        ("1,000", 1000, 1.0),
        ("about 42", 42, 0.0),
        ("26", None, None),
        ("26", float("nan"), None),
        ([{"role": "assistant", "content": "26"}], "26", 1.0),
        ([{"role": "user", "content": "26"}, {"role": "assistant", "content": "27"}], "26", 0.0),
        (
            [{"role": "assistant", "content": [{"type": "text", "text": "2"}, {"type": "text", "text": "6"}]}],
            "26",
            1.0,
        ),
        ([{"role": "assistant", "content": None}], "26", 0.0),
        ([], "26", 0.0),
    ],
)
def test_exact_match_compares_the_whole_completion(completion: Any, answer: Any, expected: float | None) -> None:
    assert score(exact_match, completion, answer) == expected


@pytest.mark.parametrize(
    ("rule", "completion", "answer", "expected"),
    [
        ("last_line", "thinking\n\n 72 \n\n", "72", 1.0),
        ("last_line", "72\nis it", "72", 0.0),
        ("last_number", "48 and 24 make 72 clips.", "72", 1.0),
        ("last_number", "so $1,234.50", "1234.5", 1.0),
        ("last_number", "it is -3", "3", 0.0),
        ("last_number", "no idea", "3", 0.0),
        ("last_number", "6", "worked out as 6", 1.0),
        ("after_hashes", "48/2 = 24\n#### 1,072", "1072", 1.0),
        ("after_hashes", "72", "72", 0.0),
        ("after_hashes", "#### 72", "24 + 48\n#### 72", 1.0),
        ("last_character", "36", "26", 1.0),
        ("last_character", "25", "26", 0.0),
    ],
)
def test_extraction_decides_what_is_compared(rule: str, completion: str, answer: str, expected: float) -> None:
    reward = resolve_reward(f"exact_match/{rule}")
    assert score(reward, completion, answer) == expected
    assert reward.__name__ == f"exact_match_{rule}"


@given(st.lists(st.text(alphabet="0123456789 -", max_size=4), min_size=1, max_size=6))
def test_one_reward_comes_back_per_completion_and_the_answer_itself_is_right(answers: list[str]) -> None:
    values = exact_match(prompts=answers, completions=answers, answer=answers)
    assert values == [1.0] * len(answers)


@pytest.mark.parametrize(
    ("completion", "answer", "expected"),
    [
        ("The answer is $\\frac{1}{2}$.", "0.5", 1.0),
        ("\\boxed{4a-2}", "4a-2", 1.0),
        ("\\boxed{2}", "4a-2", 0.0),
        ("It costs $\\$6$.", "\\$6", 1.0),
        ("so $x = 7$", "$7$", 1.0),
        ("72", "72 clips", 1.0),
        ("I can't say", "5", 0.0),
        ([{"role": "assistant", "content": "#### 1,072"}], "1072", 1.0),
        ("5", 5, 1.0),
    ],
)
def test_math_verify_compares_values_not_spellings(completion: Any, answer: Any, expected: float) -> None:
    assert score(math_verify, completion, answer) == expected


@pytest.mark.parametrize("answer", [None, "", "nothing here at all"])
def test_a_row_whose_answer_cannot_be_parsed_is_unknown(answer: Any) -> None:
    assert score(math_verify, "5", answer) is None


def test_math_verify_works_off_the_main_thread() -> None:
    found: list[float | None] = []
    thread = threading.Thread(target=lambda: found.append(score(math_verify, "$3$", "3")))
    thread.start()
    thread.join()
    assert found == [1.0]


def test_math_verify_reads_the_bare_latex_answers_of_math(data_folder: Path) -> None:
    with gzip.open(data_folder / "math" / "math500.jsonl.gz", "rt") as lines:
        answers = [json.loads(line)["answer"] for line in lines][::5]
    boxed = [f"So it is $\\boxed{{{answer}}}$." for answer in answers]
    assert math_verify(prompts=boxed, completions=boxed, answer=answers) == [1.0] * len(answers)


def test_choices_and_yes_no_are_judged_with_the_columns_they_need() -> None:
    judged = {"prompts": ["?"] * 2, "completions": ["It is the red one.", "(B)"], "answer": ["A", "A"]}
    assert multiple_choice(**judged, options=[["the red one", "the blue one"]] * 2) == [1.0, 0.0]
    assert multiple_choice(**judged) == [0.0, 0.0]
    assert yes_no(prompts=["?"], completions=["The answer is no."], answer=[False]) == [1.0]


def test_columns_of_another_length_are_refused_by_name() -> None:
    with pytest.raises(RollwiseError, match="2 completions and 1 of column 'answer'"):
        exact_match(prompts=["?"] * 2, completions=["1", "2"], answer=["1"])


def test_the_first_unknown_of_a_kind_is_said_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        yes_no(prompts=["?"], completions=["yes"], answer=["perhaps"])
    assert [record.getMessage() for record in caplog.records] == [
        "yes_no left 1 of 1 outcomes unknown: the row's answer is neither yes nor no"
    ]


def test_nothing_to_judge_is_no_error() -> None:
    assert [resolve_reward(name)(prompts=[], completions=[], **columns) for name, columns in EMPTY.items()] == [[]] * 6


EMPTY: dict[str, dict[str, list[Any]]] = {name: {"answer": []} for name in BUILT_IN if name != "reasoning_gym"} | {
    "reasoning_gym": {"reasoning_gym": []}
}


def test_built_in_names_resolve_to_functions_of_that_name() -> None:
    assert [resolve_reward(name).__name__ for name in BUILT_IN] == list(BUILT_IN)
    assert exact_match_by("whole") is exact_match


def test_a_function_of_the_users_is_found_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rewards_of_mine.py").write_text("def brevity(completions, **columns):\n    return [0.5]\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    assert resolve_reward("rewards_of_mine:brevity")(completions=["x"]) == [0.5]
    with pytest.raises(RollwiseError, match="did you mean 'brevity'"):
        resolve_reward("rewards_of_mine:brevty")


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("exact_mach", "did you mean 'exact_match'"),
        ("bleu", "exact_match, math_verify"),
        ("exact_match/last_numbr", "did you mean 'last_number'"),
        ("no_such_module:f", "no module 'no_such_module'"),
        ("json:", "no function ''"),
        (":f", "give 'module:function'"),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest_right_one(name: str, named: str) -> None:
    with pytest.raises(RollwiseError) as error:
        resolve_reward(name)
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_a_module_that_fails_to_import_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_rewards.py").write_text("raise RuntimeError('first\\nsecond')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RollwiseError, match="RuntimeError: first;") as error:
        resolve_reward("broken_rewards:score")
    assert "second" not in str(error.value)
