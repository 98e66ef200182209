"""A run whose process is gone is told from one that runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rollwise.cli.doctor import examine_runs
from rollwise.cli.run_folder import RunFolder
from rollwise.cli.run_state import never_ended, this_process


def write_record(run: Path, **record: Any) -> Path:
    run.mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"status": "running", **record}))
    (run / "config.yaml").write_text("{}")
    return run


def gone() -> dict[str, Any]:
    code = "import json; from rollwise.cli.run_state import this_process; print(json.dumps(this_process()))"
    return dict(json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout))


def test_a_run_of_a_living_process_has_not_broken_off(tmp_path: Path) -> None:
    folder = RunFolder.create(str(tmp_path / "run"), "run", {})
    assert not never_ended(folder.path)


def test_a_run_of_a_process_that_is_gone_never_ended_and_doctor_lists_it(tmp_path: Path) -> None:
    run = write_record(tmp_path / "runs" / "demo", process=gone())
    assert never_ended(run)
    (finding,) = examine_runs(tmp_path / "runs")
    assert finding.what == f"run {run}" and finding.detail.startswith("never ended") and finding.ok is None


def test_a_number_that_another_process_has_by_now_does_not_count(tmp_path: Path) -> None:
    now = this_process()
    if now["start"] is None:
        pytest.skip("no /proc: the system does not tell when a process started")
    assert never_ended(write_record(tmp_path / "run", process={**now, "start": "1"}))


@pytest.mark.parametrize(
    "record",
    [
        {"status": "complete", "process": {"host": "", "pid": 1, "start": None}},
        {"process": {"host": "another", "pid": 1 << 22, "start": None}},
        {},
        {"process": None},
    ],
)
def test_what_ended_or_cannot_be_told_is_left_alone(tmp_path: Path, record: dict[str, Any]) -> None:
    assert not never_ended(write_record(tmp_path / "run", **record))


def test_a_damaged_record_is_left_alone(tmp_path: Path) -> None:
    run = write_record(tmp_path / "run")
    (run / "run.json").write_text("{")
    assert not never_ended(run)
