"""`rollwise train --resume`: a run that was stopped goes on from its checkpoint and ends as if it had not been."""

from __future__ import annotations

import gc
import io
import json
from pathlib import Path

import pytest

from rollwise.cli.app import status_of
from rollwise.cli.arm import Events, forget_after, last_checkpoint, train_arm
from rollwise.cli.config import read_config
from rollwise.cli.run_folder import RunFolder
from rollwise.types import RollwiseError

MINE = """
from pathlib import Path
def score(completions, trainer_state, **columns):
    if Path("stop").exists() and trainer_state.global_step == 3:
        raise RuntimeError("the machine is on fire")
    return [float(len(text) % 2) for text in completions]
"""
RUN = """
data: {source: chains, limit: 40}
method: {allocator: uniform}
rewards: [my_flaky_reward:score]
steps: 4
prompts_per_step: 4
rollouts_per_prompt: 4
max_completion_length: 9
trainer: {save_steps: 2}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_flaky_reward.py").write_text(MINE)
    (tmp_path / "run.yaml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begin(output: str) -> RunFolder:
    """A run of one arm in this process, as far as it comes."""
    config = read_config(Path("run.yaml"), {})
    run = RunFolder.create(output, "run", config.model_dump(mode="json"))
    run.arm("uniform")
    try:
        run.finish_arm("uniform", train_arm(config, config.planned_arms()[0], run.path, Events(io.StringIO())))
    except RollwiseError as error:
        run.mark("failed", str(error))
        raise
    return run


def test_a_resumed_run_ends_as_the_one_that_was_not_stopped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = begin("whole").path / "uniform"
    (folder / "stop").touch()
    with pytest.raises(RollwiseError, match="the machine is on fire"):
        begin("stopped")
    gc.collect()  # its ledger is open as long as its trainer lives
    (folder / "stop").unlink()
    assert status_of(["train", "--resume", "stopped"]) == 0
    assert "started after step 2" in capsys.readouterr().err
    record = json.loads(Path("stopped/run.json").read_text())
    assert record["status"] == "complete" and "error" not in record
    assert record["arms"]["uniform"]["rollouts_spent"] == 64
    resumed = folder / "stopped" / "uniform"
    steps = [[json.loads(line)["step"] for line in (arm / "metrics.jsonl").open()] for arm in (whole, resumed)]
    assert steps == [[1, 2, 3, 4]] * 2
    weights = [(arm / "model" / "model.safetensors").read_bytes() for arm in (whole, resumed)]
    assert weights[0] == weights[1]
    assert status_of(["train", "--resume", "stopped"]) == 2
    assert (
        capsys.readouterr().err == "rollwise: --resume stopped: the run is complete; start another to train longer\n"
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--resume", "nowhere"), "--resume nowhere: no run folder; give one that rollwise train wrote"),
        (("--resume", "alive"), "--resume alive: the run is still running; stop it first"),
        (("--resume", "alive", "--steps", "9"), "--resume alive: a run goes on with its own settings; give no others"),
    ],
)
def test_what_cannot_go_on_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], line: str
) -> None:
    RunFolder.create("alive", "run", {})
    assert status_of(["train", *arguments]) == 2
    assert capsys.readouterr().err == f"rollwise: {line}\n"


def test_a_checkpoint_that_was_cut_short_does_not_count_nor_do_steps_after_the_last(tmp_path: Path) -> None:
    for step, content in ((2, "{}"), (10, "{}"), (12, "")):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(content)
    (tmp_path / "checkpoint-14").mkdir()
    assert last_checkpoint(tmp_path) == (str(tmp_path / "checkpoint-10"), 10)
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"step": 9}\n{"step": 10}\n{"step": 11}\n{"step": 1')
    forget_after(metrics, 10)
    assert metrics.read_text() == '{"step": 9}\n{"step": 10}\n'
