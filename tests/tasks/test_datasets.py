"""Data sets: every kind of source, mapped columns, prompts made of them, and faults named in one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from rollwise.tasks.datasets import DataSpec, load_rows
from rollwise.types import RollwiseError

ROWS = [{"question": f"How much is {i}+1?", "answer": f"{i} and 1\n#### {1000 + i:,}", "level": i} for i in range(6)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's cache must not answer for a file of another test."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))


def write(folder: Path, ending: str) -> Path:
    """The rows above in a file of the kind `ending`."""
    path = folder / f"rows{ending}"
    if ending == ".parquet":
        pd.DataFrame(ROWS).to_parquet(path)
        return path
    text = json.dumps(ROWS) if ending.removesuffix(".gz") == ".json" else LINES
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet"])
def test_every_kind_of_file_gives_the_same_rows(ending: str, tmp_path: Path) -> None:
    rows = load_rows(DataSpec(source=str(write(tmp_path, ending)), columns={"prompt": "question"}))
    assert rows.column_names == ["answer", "level", "prompt"]
    assert rows.to_list() == [{k if k != "question" else "prompt": v for k, v in row.items()} for row in ROWS]


def test_answers_after_a_marker_lose_the_thousands_separators(tmp_path: Path) -> None:
    spec = DataSpec(source=str(write(tmp_path, ".jsonl")), columns={"prompt": "question"}, answer_after="####")
    assert load_rows(spec)["answer"][:] == ["1000", "1001", "1002", "1003", "1004", "1005"]


def test_rows_may_be_skipped_before_they_are_counted(tmp_path: Path) -> None:
    source, columns = str(write(tmp_path, ".jsonl")), {"prompt": "question"}
    kept = [DataSpec(source=source, columns=columns, **given) for given in ({"skip": 4}, {"skip": 1, "limit": 2})]
    assert [load_rows(spec)["level"][:] for spec in kept] == [[4, 5], [1, 2]]
    refuses(DataSpec(source=source, columns=columns, skip=6), "has no rows in split 'train'")
    with pytest.raises(ValidationError, match="skip: procedural rows have no order"):
        DataSpec(source="chains", skip=1)


def test_a_marker_that_is_missing_names_the_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a", "answer": "#### 1"}\n{"prompt": "b", "answer": "2"}\n')
    with pytest.raises(RollwiseError, match=r"answer_after: '####' is not in the answer of row 1"):
        load_rows(DataSpec(source=str(path), answer_after="####"))


def test_templates_and_conversations_are_made_of_the_mapped_columns(tmp_path: Path) -> None:
    source, columns = str(write(tmp_path, ".jsonl")), {"prompt": "question"}
    templated = load_rows(DataSpec(source=source, columns=columns, limit=1, prompt_template="{level}: {prompt} {{}}"))
    assert templated[0]["prompt"] == "0: How much is 0+1? {}"
    chat = load_rows(DataSpec(source=source, columns=columns, limit=2, chat=True, system_prompt="Be brief."))
    assert chat[1]["prompt"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How much is 1+1?"},
    ]


def test_a_column_may_serve_twice_and_replace_one_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "old", "text": "new"}\n')
    rows = load_rows(DataSpec(source=str(path), columns={"prompt": "text", "answer": "text"}))
    assert rows.to_list() == [{"prompt": "new", "answer": "new"}]


def test_the_limit_takes_the_first_rows_or_a_seeded_draw(tmp_path: Path) -> None:
    source, columns = str(write(tmp_path, ".jsonl")), {"prompt": "question"}
    assert load_rows(DataSpec(source=source, columns=columns, limit=2))["level"][:] == [0, 1]
    assert len(load_rows(DataSpec(source=source, columns=columns, limit=99))) == 6
    draws = [
        load_rows(DataSpec(source=source, columns=columns, shuffle=True, seed=seed))["level"][:] for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]
    assert sorted(draws[0]) == list(range(6))


def test_a_split_may_be_a_slice(tmp_path: Path) -> None:
    source = str(write(tmp_path, ".jsonl"))
    assert len(load_rows(DataSpec(source=source, columns={"prompt": "question"}, split="test[1:3]"))) == 2


def test_variables_in_the_source_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, ".jsonl")
    monkeypatch.setenv("ROWS_AT", str(tmp_path))
    assert len(load_rows(DataSpec(source="${ROWS_AT}/rows.jsonl", columns={"prompt": "question"}))) == 6
    monkeypatch.delenv("ROWS_AT")
    with pytest.raises(RollwiseError, match="environment variable ROWS_AT is not set"):
        load_rows(DataSpec(source="${ROWS_AT}/rows.jsonl"))


def test_chains_need_no_columns_and_take_their_size_from_the_limit() -> None:
    train, test = load_rows(DataSpec(source="chains", limit=64)), load_rows(DataSpec(source="chains", split="test"))
    assert (len(train), len(test)) == (64, 512)
    assert set(train.column_names) == {"prompt", "answer", "difficulty", "id"}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "is empty"),
        (b"\n\n", "no rows"),
        (b'{"prompt": "a"}\n{"prompt": \n', "line 2 is not valid JSON"),
        (b'{"prompt": "a"}\n\n[1]\n', "line 3 is not a JSON object"),
        (b'{"prompt": "a"}\n{"prompt": "caf\xe9"}\n', "line 2 is not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_a_corrupt_file_is_named_with_the_line(content: bytes, named: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(content)
    refuses(DataSpec(source=str(tmp_path / "rows.jsonl")), named)


def test_a_damaged_file_in_a_folder_is_named_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_bytes(b'{"prompt": "a"}\n{"prompt": "caf\xe9"}\n')
    refuses(DataSpec(source=str(tmp_path), split="test"), "could not be loaded (test.jsonl: line 2 is not UTF-8 text")


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    packed = bytearray(gzip.compress(b'{"prompt": "a"}\n' * 10_000))
    packed[40:60] = bytes(20)
    path.write_bytes(packed)
    refuses(DataSpec(source=str(path)), "rows.jsonl.gz: unreadable after line")


def test_the_working_directory_is_a_folder_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test.jsonl").write_bytes(b'\xef\xbb\xbf{"prompt": "a"}\n')
    monkeypatch.chdir(tmp_path)
    assert load_rows(DataSpec(source=".", split="test"))["prompt"] == ["a"]


def test_a_truncated_archive_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, ".jsonl.gz")
    path.write_bytes(path.read_bytes()[:-30])
    refuses(DataSpec(source=str(path)), "rows.jsonl.gz: unreadable after line")


def test_a_broken_json_list_is_named_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('[\n{"prompt": "a"},\n{"prompt" "b"}]\n')
    refuses(DataSpec(source=str(tmp_path / "rows.json")), "line 3 is not valid JSON")


def test_what_is_no_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"no such thing")
    refuses(DataSpec(source=str(tmp_path / "rows.parquet")), "rows.parquet: ArrowInvalid")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"columns": {"prompt": "quetion"}}, "did you mean 'question'? (columns: question, answer, level)"),
        ({}, "no column 'prompt'"),
        ({"columns": {"prompt": "question", "gold": "solution"}}, "data.columns.gold"),
        ({"columns": {"prompt": "level"}}, "row 0 of"),
        ({"columns": {"prompt": "question"}, "prompt_template": "{question}"}, "it may use {answer}, {level}"),
        ({"columns": {"prompt": "question"}, "prompt_template": "{prompt"}, "data.prompt_template"),
        ({"columns": {"prompt": "question"}, "split": "train[6:]"}, "corresponds to no data"),
    ],
)
def test_columns_and_templates_that_do_not_fit_are_named(given: dict[str, Any], named: str, tmp_path: Path) -> None:
    refuses(DataSpec(source=str(write(tmp_path, ".jsonl")), **given), named)


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"prompt": pd.Series([], dtype=str)}).to_parquet(tmp_path / "rows.parquet")
    refuses(DataSpec(source=str(tmp_path / "rows.parquet")), "it has no rows")


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("/no/such/rows.jsonl", "does not exist"),
        ("no-such-rows.parquet", "does not exist"),
        ("./nowhere", "does not exist"),
        ("nobody/nothing", "the hub is offline"),
    ],
)
def test_a_source_that_is_not_there_is_named(source: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    refuses(DataSpec(source=source), named)


def test_a_file_of_unknown_kind_is_refused_with_the_kinds_there_are(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("a\n")
    refuses(DataSpec(source=str(tmp_path / "rows.txt")), "give a .jsonl, .jsonl.gz, .json, .json.gz, .parquet file")


@pytest.mark.parametrize(
    "given", [{"source": "chains", "system_prompt": "x"}, {"source": "chains", "limit": 0}, {"sauce": "chains"}]
)
def test_settings_that_contradict_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DataSpec(**given)


def test_gsm8k_becomes_conversations_with_bare_numbers(data_folder: Path) -> None:
    source = str(data_folder / "gsm8k" / "test.jsonl.gz")
    rows = load_rows(DataSpec(source=source, columns={"prompt": "question"}, answer_after="####", chat=True))
    assert len(rows) == 1319
    assert all(answer.lstrip("-").isdigit() for answer in rows["answer"])
    assert rows[0]["prompt"][0]["content"].startswith("Janet")


def refuses(spec: DataSpec, named: str) -> None:
    """`load_rows` raises one line that contains `named`."""
    with pytest.raises(RollwiseError) as error:
        load_rows(spec)
    assert named in str(error.value)
    assert "\n" not in str(error.value)
