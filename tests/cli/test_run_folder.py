"""The run folder: made once, never over another, its status always readable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rollwise.cli.run_folder import RunFolder, free_path
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
    assert sorted(path.name for path in folder.path.iterdir()) == ["config.yaml", "run.json"]


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
