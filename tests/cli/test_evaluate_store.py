"""The folder of an evaluation: nothing that is whole in it is lost, and what is not is named in one line."""

from __future__ import annotations

import json
import re
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rollwise.cli.evaluate_loop import Item, judged
from rollwise.cli.evaluate_store import EvaluationStore
from rollwise.tasks.generation import Completion
from rollwise.tasks.verdict import Verdict
from rollwise.types import Outcome, RollwiseError

KEYS = [("greedy", row, 0) for row in range(6)]
SETTINGS = {"model": "tiny", "data": {"source": "a.jsonl", "limit": 6}}


def row_of(row: int) -> dict[str, Any]:
    own = {"kind": "greedy", "row": row, "sample": 0, "completion": f"{row}\u2028", "tokens": 1, "ended": True}
    return own | {"outcome": "success", "reason": "", "answer": None}


def lines_of(*rows: int) -> list[bytes]:
    return [json.dumps(row_of(row)).encode() + b"\n" for row in rows]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An evaluation of six completions that are all there."""
    with EvaluationStore(tmp_path / "out", SETTINGS, KEYS) as store:
        store.add(map(row_of, range(6)))
    return tmp_path / "out"


DAMAGED = {
    "half": lines_of(2)[0][:40] + b"\n",
    "no JSON": b"\x00\xff\xfe\n",
    "a number": b"5\n",
    "another object": b'{"a": 1}\n',
    "deep": b"[" * 100_000 + b"\n",
    "of another row": lines_of(99)[0],
    "no outcome": lines_of(2)[0].replace(b'"outcome": "success", ', b""),
    "an outcome that is none": lines_of(2)[0].replace(b"success", b"maybe"),
    "two rows": lines_of(2)[0][:-1] + lines_of(3)[0],
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_line_costs_what_it_held_and_no_more(folder: Path, damaged: bytes) -> None:
    path = folder / "completions.jsonl"
    path.write_bytes(b"".join([*lines_of(0, 1), damaged, *lines_of(4, 5)]))
    for _ in range(2):  # opening it changes nothing
        with EvaluationStore(folder, SETTINGS, KEYS) as store:
            assert sorted(store.done) == [KEYS[row] for row in (0, 1, 4, 5)]
            assert store.damaged == [3]
    with EvaluationStore(folder, SETTINGS, KEYS) as store:
        store.add(map(row_of, range(6)))
    with EvaluationStore(folder, SETTINGS, KEYS) as store:
        assert store.in_order() == [row_of(row) for row in range(6)]


@pytest.mark.parametrize("kept", ["0", "1", "60", "end"])
def test_a_last_line_that_a_kill_left_unfinished_is_dropped_and_a_whole_one_kept(folder: Path, kept: str) -> None:
    path = folder / "completions.jsonl"
    last = lines_of(5)[0]
    path.write_bytes(b"".join(lines_of(0, 1)) + last[: -1 if kept == "end" else int(kept)])
    with EvaluationStore(folder, SETTINGS, KEYS) as store:
        assert store.damaged == []
        store.add([row_of(2)])
    rows = [row_of(row) for row in ((0, 1, 5, 2) if kept == "end" else (0, 1, 2))]
    assert [json.loads(line) for line in path.read_bytes().splitlines()] == rows


@pytest.mark.parametrize("text", ["", '{"model": ', "[1, 2]", "null", "\udcff"], ids=repr)
def test_settings_that_are_none_are_named(folder: Path, text: str) -> None:
    (folder / "settings.json").write_text(text, errors="surrogateescape")
    with pytest.raises(RollwiseError, match=r"settings.json is damaged: .* put it right, or give another folder"):
        EvaluationStore(folder, SETTINGS, KEYS)
    assert len((folder / "completions.jsonl").read_bytes().splitlines()) == 6


def test_a_setting_that_differs_is_named_with_both_values(folder: Path) -> None:
    other = SETTINGS | {"data": {"source": "a.jsonl", "limit": 7}}
    with pytest.raises(RollwiseError, match=r"holds an evaluation with data\.limit 6, not 7; give another folder$"):
        EvaluationStore(folder, other, KEYS)


def test_where_nothing_was_made_yet_other_settings_may_follow(tmp_path: Path) -> None:
    with EvaluationStore(tmp_path, SETTINGS, KEYS):
        pass
    (tmp_path / "settings.json.part").write_text("{")
    with EvaluationStore(tmp_path, {"model": "other"}, KEYS) as store:
        store.add([row_of(0)])
    with pytest.raises(RollwiseError, match="with model 'other', not 'tiny'"):
        EvaluationStore(tmp_path, SETTINGS, KEYS)


def test_one_at_a_time_has_the_folder(folder: Path) -> None:
    taken = "is being written by another process; let that end, or give another folder"
    with EvaluationStore(folder, SETTINGS, KEYS), pytest.raises(RollwiseError, match=taken):
        EvaluationStore(folder, SETTINGS, KEYS)
    with EvaluationStore(folder, SETTINGS, KEYS) as store:
        assert len(store.done) == 6


PLACES = {
    "mine": "mine cannot be written (File exists)",
    "mine/below/it": "mine/below/it cannot be written (Not a directory)",
    "/proc/x": "/proc/x cannot be written (No such file or directory)",
    "x" * 300: "cannot be written (File name too long)",
}


@pytest.mark.parametrize(("name", "said"), PLACES.items(), ids=["file", "below", "proc", "long"])
def test_what_cannot_be_a_folder_is_named(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(RollwiseError, match=re.escape(said) + "; give a folder with room and write access"):
        EvaluationStore(tmp_path / name, SETTINGS, KEYS)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["completions.jsonl", "settings.json"])
def test_a_folder_in_the_place_of_a_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(RollwiseError, match=f"{name} cannot be written .Is a directory"):
        EvaluationStore(folder, SETTINGS, KEYS)


@pytest.mark.parametrize("name", ["notes.txt", "completions.jsonl", "results.json"])
def test_a_folder_with_something_else_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(RollwiseError, match="holds something else"):
        EvaluationStore(tmp_path, {}, KEYS)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full to stand for a full disk")
def test_a_full_disk_is_named_and_leaves_what_was_whole(folder: Path) -> None:
    store = EvaluationStore(folder, SETTINGS, [*KEYS, ("sampled", 0, 0)])
    store._lines.close()
    with open("/dev/full", "ab") as store._lines, pytest.raises(RollwiseError, match="No space left on device"), store:
        store.add([row_of(0) | {"kind": "sampled"}])
    with EvaluationStore(folder, SETTINGS, KEYS) as again:
        assert len(again.done) == 6


def test_text_that_no_file_can_hold_is_kept_as_far_as_it_can_be(tmp_path: Path) -> None:
    verdict: Future[Verdict] = Future()
    verdict.set_result(Verdict(Outcome.FAILURE, "wrong \udfff", "\ud800"))
    with EvaluationStore(tmp_path / "out", {"a": 1}, KEYS) as store:
        store.add(judged([Item("greedy", 0, 0)], [Completion("caf\u00e9 \ud800\n\x00", 3, True)], [verdict]))
        store.finish({})
    with EvaluationStore(tmp_path / "out", {"a": 1}, KEYS) as store:
        (row,) = store.in_order()
    assert row["completion"] == "caf\u00e9 ?\n\x00"
    assert (row["reason"], row["answer"]) == ("wrong ?", "?")
    assert pd.read_parquet(tmp_path / "out" / "completions.parquet")["completion"][0] == row["completion"]
