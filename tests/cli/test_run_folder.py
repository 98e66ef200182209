"""The run folder: made once, never over another, its status always readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollwise import file_lock
from rollwise.cli.run_folder import RunFolder, free_path
from rollwise.cli.run_state import this_process
from rollwise.types import RollwiseError


def status(folder: RunFolder) -> str:
    return str(json.loads((folder.path / "run.json").read_text())["status"])


def test_a_new_run_is_marked_running_with_versions_and_configuration(tmp_path: Path) -> None:
    folder = RunFolder.create(str(tmp_path / "run"), "demo", {"steps": 3})
    assert status(folder) == "running"
    assert yaml.safe_load((folder.path / "config.yaml").read_text()) == {"steps": 3}
    assert "numpy" in folder.record["versions"] and folder.record["command"][0] == "rollwise"


def test_results_and_errors_are_kept_in_run_json(tmp_path: Path) -> None:
    folder = RunFolder.create(str(tmp_path / "run"), "demo", {})
    folder.finish_arm("uniform", {"rollouts_spent": 64})
    folder.mark("failed", "rewards: gone")
    record = json.loads((folder.path / "run.json").read_text())
    assert record["arms"] == {"uniform": {"rollouts_spent": 64}}
    assert (record["status"], record["error"]) == ("failed", "rewards: gone")
    assert sorted(path.name for path in folder.path.iterdir()) == ["config.yaml", "run.json", "run.lock"]


def test_a_folder_that_holds_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    with pytest.raises(RollwiseError, match="output: .* already exists and is not an empty folder"):
        RunFolder.create(str(tmp_path), "demo", {})
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


def test_without_output_each_run_gets_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = RunFolder.create(None, "demo", {})
    second = RunFolder.create(None, "demo", {})
    assert first.path != second.path
    assert first.path.parent == Path("runs") and first.path.name.startswith("demo-")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RollwiseError, match="output: .*file/run cannot be written"):
        RunFolder.create(str(tmp_path / "file" / "run"), "demo", {})


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    assert free_path(str(tmp_path), "demo") == tmp_path


# -- going on with one ----------------------------------------------------------------------------------------------

ELSEWHERE = {"host": "another", "pid": 17, "start": "1"}
NOBODY: dict[str, Any] = {"host": "another"}


def stopped(path: Path, **record: Any) -> Path:
    with RunFolder.create(str(path), "demo", {}) as folder:
        (folder.path / "run.json").write_text(json.dumps({"status": "running", "arms": {}, **record}))
    return path


@pytest.mark.parametrize(
    ("process", "words"),
    [(ELSEWHERE, "process 17 on another"), (None, "its record does not say where"), (NOBODY, "its record does not")],
    ids=["another host", "none", "no number"],
)
def test_a_run_that_cannot_be_seen_from_here_has_ended_where_nobody_holds_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: Any, words: str
) -> None:
    path = stopped(tmp_path / "run", process=process)
    with RunFolder.reopen(path) as folder:
        assert [words in note for note in folder.notes] == [True]
        with pytest.raises(RollwiseError, match=rf"the run is still running \({words}.*\); stop it first"):
            RunFolder.reopen(path)
        folder.resume()
    assert json.loads((path / "run.json").read_text())["process"] == this_process()
    path = stopped(tmp_path / "unlocked", process=process)
    monkeypatch.setattr(file_lock, "fcntl", None)
    with pytest.raises(RollwiseError, match=rf"cannot be seen from here \({words}.*write \"status\": \"interrupted\""):
        RunFolder.reopen(path)
    record = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(record | {"status": "interrupted"}))
    with RunFolder.reopen(path) as folder:
        assert not folder.notes


def test_a_run_of_this_machine_is_running_as_long_as_its_process_lives(tmp_path: Path) -> None:
    path = stopped(tmp_path / "run", process=this_process())
    with pytest.raises(RollwiseError, match="the run is still running"):
        RunFolder.reopen(path)
    with RunFolder.reopen(stopped(tmp_path / "gone", process=this_process() | {"pid": 2**22 + 1})) as folder:
        assert not folder.notes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "; write .* to go on with every arm"),
        ("[]", "; write .* to go on with every arm"),
        ('{"status": "failed"}', "; write .* to go on with every arm"),
        ('{"status": "failed", "arms": null}', "; write .* to go on with every arm"),
        ('{"status": "failed", "arms": {"adaroll": {}}}', "take adaroll out of arms"),
        ('{"status": "failed", "arms": {"adaroll": null}}', "take adaroll out of arms"),
        (
            '{"status": "failed", "arms": {"adaroll": {"rollouts_spent": "8", "seconds": 1}}}',
            "take adaroll out of arms",
        ),
        (
            '{"status": "failed", "arms": {"adaroll": {"rollouts_spent": 8, "seconds": 1, "after": 2}}}',
            "take adaroll out of arms",
        ),
    ],
    ids=["cut", "list", "no arms", "null", "empty", "null arm", "text", "evaluation"],
)
def test_a_damaged_record_is_refused_with_a_way_out(tmp_path: Path, text: str, words: str) -> None:
    path = stopped(tmp_path / "run")
    (path / "run.json").write_text(text)
    with pytest.raises(RollwiseError, match=f"^--resume .*run: run.json is damaged.*{words}"):
        RunFolder.reopen(path)
    assert (path / "run.json").read_text() == text
    (path / "run.json").write_text('{"status": "interrupted", "arms": {}}')
    RunFolder.reopen(path).close()
