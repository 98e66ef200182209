"""Data sets by name: rows of every split counted, traps of the sources avoided, prompts for both kinds of model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollwise.tasks.catalogue import CATALOGUE
from rollwise.tasks.datasets import DataSpec, load_rows
from rollwise.tasks.named import load_named, split_by_seed
from rollwise.tasks.verifiers import VERIFIERS
from rollwise.types import RollwiseError

COUNTS = {
    ("gsm8k", "train"): 7473,
    ("gsm8k", "test"): 1319,
    ("math", "train"): 7500,
    ("math", "test"): 5000,
    ("math500", "test"): 500,
    ("aime24", "test"): 30,
    ("aime25", "test"): 30,
    ("amc23", "test"): 40,
    ("minerva", "test"): 272,
    ("olympiadbench", "test"): 675,
    ("logiqa", "validation"): 651,
    ("logiqa", "test"): 651,
    ("logiqa2", "train"): 2871,
    ("logiqa2", "validation"): 1569,
    ("logiqa2", "test"): 1572,
    ("colota", "train"): 1523,
    ("colota", "test"): 168,
    ("colota_claims", "train"): 1485,
    ("colota_claims", "test"): 165,
}


@pytest.fixture(autouse=True)
def data_of_ours(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLWISE_DATA", str(data_folder))


@pytest.mark.parametrize(("name", "split"), COUNTS)
def test_every_split_has_its_rows_each_with_a_problem_and_an_answer(name: str, split: str) -> None:
    rows = load_named(name, split)
    assert len(rows) == COUNTS[name, split]
    assert all(text.strip() for text in rows["prompt"])
    assert all(answer.strip() for answer in rows["answer"])
    assert set(CATALOGUE[name].groups) <= set(rows.column_names)
    assert CATALOGUE[name].verifier in VERIFIERS


def test_every_split_is_counted_but_the_one_that_is_on_the_hub_only() -> None:
    every = {(name, split) for name, named in CATALOGUE.items() for split in named.splits}
    assert every - set(COUNTS) == {("logiqa", "train")}


def test_the_first_4000_rows_of_math_are_the_four_subjects_that_come_first() -> None:
    rows = load_rows(DataSpec(source="math", limit=4000))
    subjects = rows["subject"][:]
    assert {subject: subjects.count(subject) for subject in dict.fromkeys(subjects)} == {
        "Algebra": 1744,
        "Counting & Probability": 771,
        "Geometry": 870,
        "Intermediate Algebra": 615,
    }


def test_answers_are_extracted_of_all_gsm8k_and_math_solutions() -> None:
    assert all(
        answer.lstrip("-").isdigit() for split in ("train", "test") for answer in load_named("gsm8k", split)["answer"]
    )
    published_empty = ["train/number_theory/7115.json", "train/number_theory/7117.json"]
    rows = load_named("math", "train")
    assert [row["id"] for row in rows if "\\boxed{}" in row["solution"]] == published_empty
    assert [row["answer"] for row in rows if row["id"] in published_empty] == ["0", "0"]


def test_logiqa_answers_follow_the_printed_letters_where_options_were_out_of_order(data_folder: Path) -> None:
    import gzip
    import json

    with gzip.open(data_folder / "logiqa" / "test.jsonl.gz", "rt", encoding="utf-8") as lines:
        published = [json.loads(line) for line in lines]
    reordered = [index for index, row in enumerate(published) if row.get("options_reordered")]
    assert len(reordered) == 19
    assert sum("ABCD"[published[index]["label"]] in "BC" for index in reordered) == 12
    rows = load_named("logiqa", "test")
    for index in reordered:
        assert (
            rows[index]["options"][published[index]["label"]]
            == published[index]["options"]["ABCD".index(rows[index]["answer"])]
        )
        assert (
            f"{rows[index]['answer']}. {published[index]['options'][published[index]['label']]}"
            in rows[index]["prompt"]
        )


def test_training_on_logiqa2_leaves_out_what_the_v1_test_asks() -> None:
    known = {row["prompt"].splitlines()[0] for split in ("validation", "test") for row in load_named("logiqa2", split)}
    kept = {row["prompt"].splitlines()[0] for row in load_named("logiqa2", "train")}
    assert 0 < len(known - kept) <= 270
    assert kept <= known


def test_colota_is_split_by_seed_and_a_repeated_question_is_on_one_side() -> None:
    first, again, other = (load_named("colota", "test", seed)["prompt"][:] for seed in (0, 0, 1))
    assert first == again != other
    assert not set(first) & set(load_named("colota", "train", 0)["prompt"])
    assert (
        load_named("colota", "train", 0)["answer"].count("yes")
        + load_named("colota", "test", 0)["answer"].count("yes")
        == 837
    )


def test_the_two_sides_of_a_split_are_the_whole() -> None:
    prompts = ["a", "b", "a", "c", "d", "e"]
    sides = [split_by_seed(prompts, 0.4, split, 3) for split in ("train", "test")]
    assert sorted(sides[0] + sides[1]) == list(range(6))
    assert len({prompts[index] for index in sides[1]}) == 2
    assert (0 in sides[0]) == (2 in sides[0])


@pytest.mark.parametrize("name", CATALOGUE)
def test_instruct_and_base_models_get_prompts_of_their_own(name: str) -> None:
    split = "validation" if name == "logiqa" else "test"
    bare = load_named(name, split)[0]["prompt"]
    chat: Any = load_rows(DataSpec(source=name, split=split, limit=1, chat=True, system_prompt="Hi."))[0]["prompt"]
    assert [message["role"] for message in chat] == ["system", "user"]
    assert chat[1]["content"] == f"{bare}\n\n{CATALOGUE[name].chat}"
    base = load_rows(DataSpec(source=name, split=split, limit=1))[0]["prompt"]
    assert base == CATALOGUE[name].base.replace("{prompt}", bare)
    own = load_rows(DataSpec(source=name, split=split, limit=1, prompt_template="<{prompt}>"))[0]["prompt"]
    assert own == f"<{bare}>"


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"source": "gsm8k", "split": "tset"}, "did you mean 'test'?"),
        ({"source": "colota", "split": "validation"}, "valid: test, train"),
    ],
)
def test_a_split_that_is_not_there_is_named(spec: dict[str, Any], named: str) -> None:
    with pytest.raises(RollwiseError, match=r"^data\.split") as error:
        load_rows(DataSpec(**spec))
    assert named in str(error.value)


def test_without_a_local_copy_the_error_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("ROLLWISE_DATA", str(tmp_path))
    with pytest.raises(
        RollwiseError, match=r"openai/gsm8k .* or set ROLLWISE_DATA to a folder with gsm8k/train.jsonl.gz"
    ):
        load_named("gsm8k", "train")
    with pytest.raises(RollwiseError, match="colota is on no hub; set ROLLWISE_DATA"):
        load_named("colota", "train")


def test_a_damaged_or_foreign_copy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    monkeypatch.setenv("ROLLWISE_DATA", str(tmp_path))
    path = tmp_path / "gsm8k" / "train.jsonl.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(b'{"question": "a"}\n'))
    with pytest.raises(RollwiseError, match="has other rows than expected"):
        load_named("gsm8k", "train")
    path.write_bytes(b"no gzip")
    with pytest.raises(RollwiseError, match="cannot be read"):
        load_named("gsm8k", "train")
