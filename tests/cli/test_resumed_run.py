"""`rollwise train --resume`: a run that was stopped goes on from its checkpoint and ends as if it had not been."""

from __future__ import annotations

import gc
import io
import json
from pathlib import Path

import pytest

from rollwise.cli.app import status_of
from rollwise.cli.arm import Events, find_checkpoint, train_arm
from rollwise.cli.config import read_config
from rollwise.cli.run_folder import RunFolder
from rollwise.cli.run_state import this_process
from rollwise.integrations.trl.manifest import write_manifest
from rollwise.ledger import Ledger
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
    finally:
        run.close()
    return run


def test_a_resumed_run_ends_as_the_one_that_was_not_stopped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = begin("whole").path / "uniform"
    (folder / "stop").touch()
    with pytest.raises(RollwiseError, match="the machine is on fire"):
        begin("stopped")
    gc.collect()  # its ledger is open as long as its trainer lives
    (folder / "stop").unlink()
    damaged = folder / "stopped" / "uniform" / "checkpoint-4"
    damaged.mkdir()
    (damaged / "trainer_state.json").write_text('{"global_step": 4}')
    assert status_of(["train", "--resume", "stopped"]) == 0
    results, said = capsys.readouterr()
    assert "uniform: checkpoint-4 is passed over: rollwise_manifest.json is missing" in said
    assert "uniform: started after step 2" in said
    record = json.loads(Path("stopped/run.json").read_text())
    assert record["status"] == "complete" and "error" not in record
    assert record["arms"]["uniform"]["rollouts_spent"] == 64
    resumed = folder / "stopped" / "uniform"
    rows = [[json.loads(line) for line in (arm / "metrics.jsonl").open()] for arm in (whole, resumed)]
    assert [[row["step"] for row in own] for own in rows] == [[1, 2, 3, 4]] * 2
    seconds = [row["seconds"] for row in rows[1]]
    assert seconds == sorted(seconds) and record["arms"]["uniform"]["seconds"] >= round(seconds[1], 1)
    lost = record["arms"]["uniform"]["rollouts_lost"]
    assert lost == Ledger(resumed / "rollwise" / "ledger.jsonl").paid - 64 > 0
    assert f"({lost} more lost to a stop and made again)" in " ".join(results.split())
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
        (("--resume", "alive"), "--resume alive: the run is still running ({place}); stop it first"),
        (("--resume", "alive", "--steps", "9"), "--resume alive: a run goes on with its own settings; give no others"),
    ],
)
def test_what_cannot_go_on_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], line: str
) -> None:
    RunFolder.create("alive", "run", {})
    assert status_of(["train", *arguments]) == 2
    place = "process {pid} on {host}".format_map(this_process())
    assert capsys.readouterr().err == f"rollwise: {line.format(place=place)}\n"


def test_an_arm_goes_on_from_its_last_whole_checkpoint_and_says_what_it_passed_over(folder: Path) -> None:
    config = read_config(Path("run.yaml"), {})
    assert find_checkpoint(config, folder / "arm") == (None, 0, [])
    for step in (2, 4, 10):
        path = folder / "arm" / f"checkpoint-{step}"
        path.mkdir(parents=True)
        (path / "optimizer.pt").write_bytes(bytes(step))
        write_manifest(path, step)
        (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    (folder / "arm" / "checkpoint-best").mkdir()
    last = folder / "arm" / "checkpoint-10"
    assert find_checkpoint(read_config(Path("run.yaml"), {"steps": 12}), folder / "arm") == (str(last), 10, [])
    more = "10 steps are trained already, more than steps: 4; nothing is left to train"
    assert find_checkpoint(config, folder / "arm") == (str(last), 10, [more])
    (last / "optimizer.pt").unlink()
    passed_over = "checkpoint-10 is passed over: optimizer.pt is missing"
    assert find_checkpoint(config, folder / "arm") == (str(last.parent / "checkpoint-4"), 4, [passed_over])
    for step in (2, 4):
        (folder / "arm" / f"checkpoint-{step}" / "trainer_state.json").unlink()
    found, step, notes = find_checkpoint(config, folder / "arm")
    assert (found, step, notes[-1]) == (None, 0, "starts anew: none of its checkpoints is whole") and len(notes) == 4
    alone = read_config(Path("run.yaml"), {"trainer.save_only_model": True})
    only = "starts anew: its checkpoints hold the model alone, as trainer.save_only_model asks"
    assert find_checkpoint(alone, folder / "arm") == (None, 0, [only])
