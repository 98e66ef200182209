"""The run folder that was meant is found by the start of its name, or the nearest is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rollwise.cli.app import status_of
from rollwise.report.run_search import find_run
from rollwise.types import RollwiseError


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_run(path: str, started: str) -> Path:
    folder = Path(path)
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"started": started}))
    (folder / "config.yaml").write_text("name: demo\n")
    return folder


def test_the_latest_run_whose_name_starts_so_is_taken() -> None:
    early = make_run("runs/demo-2", "2026-01-01T12:00:00+00:00")
    late = make_run("runs/demo-1", "2026-01-02T12:00:00+00:00")
    make_run("runs/other", "2026-01-03T12:00:00+00:00")
    assert find_run(Path("runs/demo")) == late
    assert find_run(Path("runs/demo-2")) == early


def test_a_folder_without_a_run_is_passed_over_for_one_that_has() -> None:
    Path("runs/demo").mkdir(parents=True)
    Path("runs/demo-draft").mkdir()
    run = make_run("runs/demo-1", "2026-01-01T12:00:00+00:00")
    assert find_run(Path("runs/demo")) == run


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("runs/dmeo-1", "the nearest is runs/demo-1"),
        ("runs/zzz", "the latest is runs/other"),
        ("runs", "the latest in it is runs/other"),
        ("demo-1", "the nearest is runs/demo-1"),
        ("elsewhere/demo", "give one that rollwise train wrote"),
    ],
)
def test_where_none_is_meant_the_nearest_is_named(given: str, hint: str) -> None:
    make_run("runs/demo-1", "2026-01-01T12:00:00+00:00")
    make_run("runs/other", "2026-01-02T12:00:00+00:00")
    with pytest.raises(RollwiseError, match=r"is not a run folder \(no run.json\); ") as caught:
        find_run(Path(given))
    assert str(caught.value).endswith(hint)


def test_the_command_says_which_run_it_took(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs").mkdir()
    Path("runs/demo-1").symlink_to(finished_run, target_is_directory=True)
    assert status_of(["report", "runs/demo"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "run folder: runs/demo-1 (the latest whose name starts with demo)",
        "report: runs/demo-1/report.html",
    ]
