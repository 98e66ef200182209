"""A run stopped and resumed in a new process is the run that was never stopped, and pays nothing twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trl import GRPOTrainer

from rollwise.integrations.trl import RollwiseGRPOTrainer
from rollwise.types import RollwiseError
from tests.integrations.trl.support import rollwise, same, stock, train

# 8 prompts x 4 rollouts per block, two optimizer steps per block, three blocks per epoch of 24 prompts
SHAPE = {"steps_per_generation": 4, "lr_scheduler_type": "constant", "save_strategy": "steps", "save_steps": 1}
SHAPE |= {"prior": "carried", "objective": "log", "scale_rewards": "none"}
STOPS = {"boundary": 2, "inside": 3, "epoch 2": 8, "inside epoch 2": 9}
LAST = 10


@pytest.fixture(scope="module")
def results(
    launch: Callable[..., list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("resume")
    whole = {"name": "whole", "kind": "generated", "max_steps": LAST, **SHAPE}
    stopped = [{"name": name, "kind": "generated", "max_steps": at, **SHAPE} for name, at in STOPS.items()]
    resumed = [
        {"name": name, "kind": "generated", "max_steps": LAST, "resume": f"checkpoint-{at}", **SHAPE}
        for name, at in STOPS.items()
    ]
    before = launch(folder, 1, [whole, *stopped])[0]
    return folder, before, launch(folder, 1, resumed)[0]


@pytest.mark.parametrize("name", STOPS)
def test_final_parameters_equal_those_of_an_unbroken_run(results: Any, name: str) -> None:
    _, before, after = results
    assert not same(before[name]["parameters"], before["whole"]["parameters"])
    assert same(after[name]["parameters"], before["whole"]["parameters"])


@pytest.mark.parametrize("name", STOPS)
def test_no_rollout_is_paid_twice(results: Any, name: str) -> None:
    folder, _, _ = results

    def paid(run: str) -> list[tuple[str, str]]:
        lines = map(json.loads, (folder / run / "rollwise" / "ledger.jsonl").read_text().splitlines())
        return [
            (entry["id"], entry["prompt_id"]) for line in lines if line["type"] == "wave" for entry in line["rollouts"]
        ]

    assert paid(name) == paid("whole")
    assert len(set(paid(name))) == len(paid(name)) == 5 * 32


def test_a_damaged_state_is_refused_in_one_line(model: str, tmp_path: Path) -> None:
    shape = {"output_dir": tmp_path, "save_strategy": "steps", "save_steps": 1}
    train(RollwiseGRPOTrainer, rollwise(shape.pop("output_dir"), max_steps=1, **shape), model)
    checkpoint = tmp_path / "checkpoint-1"
    (checkpoint / "rollwise_state_0.pt").write_bytes(b"not a state")
    with pytest.raises(RollwiseError, match="resume_from_checkpoint: .* is damaged"):
        train(RollwiseGRPOTrainer, rollwise(tmp_path, max_steps=2, **shape), model, resume=str(checkpoint))


def test_a_stock_checkpoint_goes_on_with_its_open_block_made_again(
    model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shape = {"save_strategy": "steps", "save_steps": 1, "steps_per_generation": 4}
    train(GRPOTrainer, stock(tmp_path, max_steps=1, **shape), model)
    checkpoint = str(tmp_path / "checkpoint-1")
    trainer = train(RollwiseGRPOTrainer, rollwise(tmp_path, max_steps=4, **shape), model, resume=checkpoint)["trainer"]
    assert "was not saved by rollwise" in capfd.readouterr().out
    assert trainer.state.global_step == 4
    assert trainer.last_record.step == 2, "block 0 was open, is made again as block 1, and block 2 follows"
