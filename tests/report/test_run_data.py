"""Reading run folders: what the ledger says, rewinds, damage."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from rollwise.report.run_data import read_arm, read_run
from rollwise.types import RollwiseError

METHOD = {"name": "arm", "allocator": "adaroll"}


def rollout(step: int, prompt: str, outcome: str, wave: int = 0) -> str:
    reward = {"success": 1.0, "failure": 0.0, "unknown": None}[outcome]
    line = {"type": "rollout", "step": step, "prompt_id": prompt, "outcome": outcome, "wave": wave, "reward": reward}
    return json.dumps(line) + "\n"


def write_ledger(run: Path, text: str) -> None:
    folder = run / "arm" / "rollwise"
    folder.mkdir(parents=True)
    (folder / "ledger.jsonl").write_text(text)


def test_rollouts_are_counted_by_prompt_and_step(tmp_path: Path) -> None:
    lines = [("a", "success"), ("a", "failure"), ("a", "unknown"), ("b", "failure")]
    write_ledger(tmp_path, "".join(rollout(0, *line) for line in lines) + rollout(1, "a", "success"))
    arm = read_arm(tmp_path, METHOD, {})
    assert arm.n.tolist() == [3, 1, 1]
    assert arm.known.tolist() == [2, 1, 1]
    assert arm.successes.tolist() == [1, 0, 1]


def test_the_reward_curve_reads_the_first_wave_only_and_each_prompt_once(tmp_path: Path) -> None:
    text = rollout(0, "a", "success") + rollout(0, "a", "failure") + rollout(0, "b", "success")
    text += 5 * rollout(0, "b", "failure", wave=1) + rollout(1, "a", "unknown") + rollout(2, "c", "failure")
    write_ledger(tmp_path, text)
    arm = read_arm(tmp_path, METHOD, {})
    assert arm.first_wave.tolist() == pytest.approx([0.75, math.nan, 0.0], nan_ok=True)
    assert arm.spent.tolist() == [8.0, 9.0, 10.0]


def test_a_rewound_step_is_counted_once(tmp_path: Path) -> None:
    rewind = json.dumps({"type": "rewind", "step": 1, "rollouts_lost": 2}) + "\n"
    text = rollout(0, "a", "success") + 2 * rollout(1, "a", "failure") + rewind + rollout(1, "a", "success")
    write_ledger(tmp_path, text)
    arm = read_arm(tmp_path, METHOD, {})
    assert arm.n.tolist() == [1, 1]
    assert arm.successes.tolist() == [1, 1]


def test_a_line_cut_short_by_a_kill_is_left_out(tmp_path: Path) -> None:
    write_ledger(tmp_path, rollout(0, "a", "success") + rollout(0, "a", "failure")[:20])
    assert read_arm(tmp_path, METHOD, {}).n.tolist() == [1]


def test_every_arm_spends_the_same_and_each_rollout_is_in_the_ledger(finished_run: Path) -> None:
    uniform, adaptive = read_run(finished_run).arms
    assert uniform.name == "uniform" and set(uniform.n.tolist()) == {8}
    assert uniform.n.sum() == adaptive.n.sum() == 30 * 4 * 8
    assert len(set(adaptive.n.tolist())) > 2
    spent, values = adaptive.series("dead_prompt_share")
    assert spent[-1] == 960 and len(values) == 30


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RollwiseError, match=r"is not a run folder \(no run.json\)"):
        read_run(tmp_path)


@pytest.mark.parametrize("text", ["{[\n", "5\n", "[" * 100_000 + "\n"], ids=["half", "number", "deep"])
@pytest.mark.parametrize("file", ["run.json", "uniform/metrics.jsonl", "uniform/rollwise/ledger.jsonl", "config.yaml"])
def test_a_damaged_file_is_one_clear_line(finished_run: Path, tmp_path: Path, file: str, text: str) -> None:
    copy = shutil.copytree(finished_run, tmp_path / "copy")
    (copy / file).write_text(text)
    with pytest.raises(RollwiseError, match=r"is damaged \(.*; restore its files") as caught:
        read_run(copy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", ["uniform/metrics.jsonl", "uniform/rollwise/ledger.jsonl"])
def test_a_folder_in_the_place_of_a_file_is_one_clear_line(finished_run: Path, tmp_path: Path, file: str) -> None:
    copy = shutil.copytree(finished_run, tmp_path / "copy")
    (copy / file).unlink()
    (copy / file).mkdir()
    with pytest.raises(RollwiseError, match=r"is damaged \(IsADirectoryError") as caught:
        read_run(copy)
    assert "\n" not in str(caught.value)


def test_a_run_without_a_step_says_its_status(finished_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished_run, tmp_path / "copy")
    for arm in ("uniform", "adaroll"):
        (copy / arm / "metrics.jsonl").unlink()
    with pytest.raises(RollwiseError, match="holds no trained step yet; its status is complete"):
        read_run(copy)
