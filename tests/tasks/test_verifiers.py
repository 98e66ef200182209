"""Verifiers against what people published: labelled solutions, graded samples, and every gold answer against itself."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rollwise.tasks.named import load_named
from rollwise.tasks.verifiers import VERIFIERS, judge_all, resolve_verifier
from rollwise.types import Outcome, RollwiseError

EXCEPTIONS = Path(__file__).parent / "gold_exceptions.json"
"""Rows whose published solution does not grade as correct, each with the reason."""


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("name", "step"), [("numeric", 1), ("exact_match/last_number", 1), ("math_verify", 8)])
def test_labels_of_gsm8k_solutions_are_agreed_with(name: str, step: int, data_folder: Path) -> None:
    rows = read(data_folder / "gsm8k_labelled_solutions" / "solutions.jsonl.gz")
    assert len(rows) == 2640
    rows = rows[::step]
    found = judge_all(VERIFIERS[name], [row["solution"] for row in rows], [{"answer": row["gold"]} for row in rows])
    assert [verdict.reward for verdict in found] == [float(row["is_correct"]) for row in rows]
    assert 0 < sum(row["is_correct"] for row in rows) < len(rows)


@pytest.mark.parametrize("name", ["math_verify", "exact_match/boxed"])
def test_grades_of_math_samples_are_agreed_with(name: str, data_folder: Path) -> None:
    rows = read(data_folder / "success_rates" / "qwen25math_cot8_math100.jsonl.gz")
    graded = [(answer, row["answer"], ok) for row in rows for answer, ok in zip(row["preds"], row["correct"])]
    assert len(graded) == 392
    texts, golds = [f"\\boxed{{{answer}}}" for answer, _, _ in graded], [{"answer": gold} for _, gold, _ in graded]
    assert [verdict.reward for verdict in judge_all(VERIFIERS[name], texts, golds)] == [float(ok) for *_, ok in graded]


@pytest.mark.parametrize(
    ("name", "split"),
    [("gsm8k", "train"), ("gsm8k", "test"), ("math", "train"), ("math", "test"), ("math500", "test")],
)
def test_published_solutions_grade_as_correct_but_for_the_listed_ones(
    name: str, split: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWISE_DATA", str(data_folder))
    rows = load_named(name, split)
    verifier = VERIFIERS["numeric" if name == "gsm8k" else "math_verify"]
    found = judge_all(verifier, rows["solution"][:], [{"answer": answer} for answer in rows["answer"]])
    wrong = [index for index, verdict in enumerate(found) if verdict.outcome is not Outcome.SUCCESS]
    assert wrong == json.loads(EXCEPTIONS.read_text()).get(f"{name}/{split}", {}).get("rows", [])


@pytest.mark.parametrize("name", ["aime24", "aime25", "amc23", "minerva", "olympiadbench"])
def test_answers_of_the_contests_grade_as_correct(
    name: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWISE_DATA", str(data_folder))
    answers = load_named(name, "test")["answer"][:]
    texts = [f"So it is $\\boxed{{{answer}}}$." for answer in answers]
    found = judge_all(VERIFIERS["math_verify"], texts, [{"answer": answer} for answer in answers])
    assert {verdict.reward for verdict in found} == {1.0}


@pytest.mark.parametrize("name", ["logiqa", "colota"])
def test_answers_of_the_choices_grade_as_correct_and_every_other_as_wrong(
    name: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWISE_DATA", str(data_folder))
    rows = load_named(name, "test").to_list()
    verifier = VERIFIERS["multiple_choice" if name == "logiqa" else "yes_no"]
    for said in "ABCD" if name == "logiqa" else ("yes", "no"):
        found = judge_all(verifier, [f"Hence ... The answer is ({said})."] * len(rows), rows)
        assert [verdict.reward for verdict in found] == [float(row["answer"] == said) for row in rows]


def test_answers_of_other_problems_grade_as_wrong(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLWISE_DATA", str(data_folder))
    answers = load_named("math500", "test")["answer"][:80]
    shifted = answers[1:] + answers[:1]
    found = judge_all(VERIFIERS["math_verify"], [f"\\boxed{{{a}}}" for a in shifted], [{"answer": a} for a in answers])
    right = [index for index, verdict in enumerate(found) if verdict.outcome is not Outcome.FAILURE]
    assert {(answers[index], shifted[index]) for index in right} == {("5", "x=5")}


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("numerc", "did you mean 'numeric'?"),
        ("exact_match/boxd", "did you mean 'boxed'?"),
        ("json:nothing", "'json' has no function 'nothing'"),
    ],
)
def test_an_unknown_verifier_is_refused_with_the_nearest(name: str, named: str) -> None:
    with pytest.raises(RollwiseError, match=r"^verifier: ") as error:
        resolve_verifier(name)
    assert named in str(error.value)
