"""A run stopped and resumed in a new process is the run that was never stopped, and pays nothing twice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from trl import GRPOTrainer

from rollwise.integrations.trl import RollwiseGRPOTrainer
from rollwise.integrations.trl.manifest import write_manifest
from rollwise.types import IntArray, RollwiseError, StepView
from tests.integrations.trl.support import brevity, digits, has_answer, rollwise, same, stock, train
from tests.integrations.trl.worker import OneTakesAll

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


# -- what a checkpoint must agree with ------------------------------------------------------------------------------

KEPT = {"save_strategy": "steps", "save_steps": 1}


@pytest.fixture(scope="module")
def saved(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one step, stopped; 4 prompts x 4 rollouts, `adaroll`."""
    folder = tmp_path_factory.mktemp("saved")
    train(RollwiseGRPOTrainer, rollwise(folder, max_steps=1, **KEPT), model)
    return folder


@pytest.fixture
def checkpoint(saved: Path, tmp_path: Path) -> str:
    """A copy of that run's checkpoint, in `tmp_path`."""
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    return str(tmp_path / "checkpoint-1")


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"num_generations": 2}, 4, 2),
        ({"gradient_accumulation_steps": 4}, 2, 4),
        ({"steps_per_generation": 4}, 2, 4),
        ({"per_device_train_batch_size": 4}, 8, 4),
        ({"num_iterations": 2}, 1, 2),
        ({"seed": 8}, 7, 8),
        ({"shuffle_dataset": False}, True, False),
        ({"scale_rewards": "none"}, "group", "none"),
        ({"reward_weights": [0.5]}, None, [0.5]),
        ({"allocator": "uniform"}, "adaroll", "uniform"),
        ({"utility": "sum_variance"}, "min_variance", "sum_variance"),
        ({"waves": 2}, 4, 2),
        ({"sequential": True}, False, True),
        ({"n_min": 1}, 2, 1),
        ({"n_max": 8}, None, 8),
        ({"prior": "carried"}, "1,1", "carried"),
        ({"weighting": "per_prompt"}, "per_rollout", "per_prompt"),
        ({"objective": "log"}, "none", "log"),
        ({"outcome": "has_answer"}, "the summed reward", "has_answer"),
        ({"outcome_threshold": 0.5}, None, 0.5),
        ({"optim": "sgd"}, "adamw_torch_fused", "sgd"),
        ({"lr_scheduler_type": "cosine"}, "linear", "cosine"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_resume_with_another_setting_names_it_with_both_values(
    model: str, tmp_path: Path, checkpoint: str, changes: dict[str, Any], old: Any, new: Any
) -> None:
    before = (tmp_path / "rollwise" / "ledger.jsonl").read_bytes()
    config = rollwise(tmp_path, **{"max_steps": 2, **KEPT, **changes})
    with pytest.raises(RollwiseError) as caught:
        train(RollwiseGRPOTrainer, config, model, resume=checkpoint)
    assert str(caught.value) == (
        f"{next(iter(changes))}: {old!r} in {checkpoint}, {new!r} now; "
        f"resume with {old!r}, or start anew in another output_dir"
    )
    assert (tmp_path / "rollwise" / "ledger.jsonl").read_bytes() == before


def test_a_resume_on_other_data_or_rewards_is_refused(model: str, tmp_path: Path, checkpoint: str) -> None:
    config = rollwise(tmp_path, max_steps=2, **KEPT)
    with pytest.raises(RollwiseError, match=r"^train_dataset: rows: 24 in .*, 28 now; resume with 24"):
        train(RollwiseGRPOTrainer, config, model, resume=checkpoint, train_dataset=digits(28))
    with pytest.raises(RollwiseError, match=r"^reward_funcs: \['has_answer'\] in .*, \['has_answer', 'brevity'\] now"):
        train(RollwiseGRPOTrainer, config, model, [has_answer, brevity], resume=checkpoint)


def test_what_shapes_no_block_may_change_on_resume_and_takes_effect(
    model: str, tmp_path: Path, checkpoint: str
) -> None:
    free = {
        "max_steps": 3,
        "learning_rate": 1e-4,
        "logging_steps": 2,
        "save_steps": 3,
        "temperature": 0.7,
        "beta": 0.1,
    }
    trainer = train(RollwiseGRPOTrainer, rollwise(tmp_path, **{**KEPT, **free}), model, resume=checkpoint)["trainer"]
    assert trainer.state.global_step == 3
    assert trainer.rollouts_spent == 3 * 16
    logged = {entry["step"]: entry["learning_rate"] for entry in trainer.state.log_history if "loss" in entry}
    assert logged == {1: 1e-3, 2: pytest.approx(1e-4 * 2 / 3)}, "linear, from 1e-4 over three steps; logged every two"
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-1", "checkpoint-3"]


def test_a_run_that_is_as_long_as_asked_trains_no_further(model: str, tmp_path: Path, checkpoint: str) -> None:
    config = rollwise(tmp_path, max_steps=1, **KEPT)
    result = train(RollwiseGRPOTrainer, config, model, resume=checkpoint)
    trainer, saved = result["trainer"], load_file(Path(checkpoint) / "model.safetensors")
    assert (trainer.state.global_step, trainer.rollouts_spent, result["gradients"]) == (1, 16, [])
    weights = dict(trainer.model.named_parameters())
    assert all(torch.equal(weights[name], value) for name, value in saved.items() if name in weights)


LEDGER = Path("rollwise/ledger.jsonl")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), "holds 0 rollouts, 16 were paid for when checkpoint-1 was saved; put back"),
        (lambda path: path.write_text(""), "holds 0 rollouts, 16 were paid for"),
        (
            lambda path: path.write_text(path.read_text().replace('"0-0"', '"0-x"')),
            "16 were paid for .*, and not the same",
        ),
    ],
    ids=["missing", "empty", "another"],
)
def test_a_ledger_that_lacks_what_was_paid_for_is_refused(
    model: str, tmp_path: Path, checkpoint: str, damage: Callable[[Path], object], words: str
) -> None:
    damage(tmp_path / LEDGER)
    with pytest.raises(RollwiseError, match=f"^ledger: .*{words}"):
        train(RollwiseGRPOTrainer, rollwise(tmp_path, max_steps=2, **KEPT), model, resume=checkpoint)


def test_of_damaged_checkpoints_none_is_gone_on_with(
    model: str, tmp_path: Path, checkpoint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (Path(checkpoint) / "optimizer.pt").unlink()
    config = rollwise(tmp_path, max_steps=2, **KEPT)
    with pytest.raises(RollwiseError, match=r"^resume_from_checkpoint: .*checkpoint-1: optimizer.pt is missing"):
        train(RollwiseGRPOTrainer, config, model, resume=checkpoint)
    with pytest.raises(RollwiseError, match=r"^resume_from_checkpoint: .* holds no whole checkpoint; start anew"):
        train(RollwiseGRPOTrainer, config, model, resume=True)
    assert "rollwise: checkpoint-1 is passed over: optimizer.pt is missing" in capfd.readouterr().out


def test_what_rollouts_took_is_taken_up(model: str, tmp_path: Path) -> None:
    spends = {"utility": "sum_variance", "allocator_settings": {"token_budget": 50}, "max_steps": 2}
    whole = train(RollwiseGRPOTrainer, rollwise(tmp_path, **KEPT, **spends), model)["trainer"]
    again = train(
        RollwiseGRPOTrainer, rollwise(tmp_path, **KEPT, **spends), model, resume=str(tmp_path / "checkpoint-1")
    )["trainer"]
    ids = [*whole.last_record.prompt_ids, "new"]
    assert again.last_record.counts.tolist() == whole.last_record.counts.tolist()
    assert np.array_equal(again._costs.for_step(ids), whole._costs.for_step(ids))
    assert not np.allclose(whole._costs.for_step(ids), 6.0)


def _load(checkpoint: str) -> Any:
    return torch.load(Path(checkpoint) / "rollwise_state_0.pt", weights_only=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda state: b"not a state", "is damaged"),
        (lambda state: [1, 2], "holds no rollwise state"),
        (lambda state: {}, "has format None; this version reads 3"),
        (lambda state: {**state, "format": 1}, "has format 1; this version reads 3"),
        (lambda state: {**state, "world": 3}, "is from 3 processes; start as many, not 1"),
        (lambda state: {k: v for k, v in state.items() if k != "settings"}, "lacks 'settings' or holds a wrong one"),
        (lambda state: {**state, "step": "2"}, "lacks 'step' or holds a wrong one"),
        (lambda state: {**state, "carried": {}}, "holds a state that does not fit"),
        (lambda state: {**state, "carried": {**state["carried"], "prior": [1]}}, "does not fit"),
        (
            lambda state: {**state, "carried": {**state["carried"], "prior": {"kind": "carried"}}},
            "this run's prior is",
        ),
    ],
    ids=["bytes", "list", "empty", "older", "world", "no settings", "wrong type", "nothing", "list in it", "prior"],
)
def test_a_state_of_wrong_content_is_refused_in_one_line(
    model: str, tmp_path: Path, checkpoint: str, content: Any, message: str
) -> None:
    path = Path(checkpoint) / "rollwise_state_0.pt"
    made = content(_load(checkpoint))
    path.write_bytes(made) if isinstance(made, bytes) else torch.save(made, path)
    write_manifest(path.parent, 1)
    with pytest.raises(RollwiseError, match="^resume_from_checkpoint: ") as caught:
        train(RollwiseGRPOTrainer, rollwise(tmp_path, max_steps=2, **KEPT), model, resume=checkpoint)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_rule_that_carries_something_goes_on_with_it(model: str, tmp_path: Path) -> None:
    for last, resume in ((1, None), (2, str(tmp_path / "checkpoint-1"))):
        rule = Counting()
        config = rollwise(tmp_path, max_steps=last, **KEPT)
        train(RollwiseGRPOTrainer, config, model, allocator=rule, resume=resume)
        assert rule.steps == last


class Counting(OneTakesAll):
    """A rule that counts the steps it decided."""

    steps = 0

    def next_wave(self, view: StepView, rng: Any) -> IntArray:
        self.steps += int(view.paid.sum() == 0)
        return super().next_wave(view, rng)

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps = state["steps"]


def test_a_stock_checkpoint_goes_on_with_its_open_block_made_again(
    model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shape = {"save_strategy": "steps", "save_steps": 1, "steps_per_generation": 4}
    train(GRPOTrainer, stock(tmp_path, max_steps=1, **shape), model)
    checkpoint = str(tmp_path / "checkpoint-1")
    trainer = train(RollwiseGRPOTrainer, rollwise(tmp_path, max_steps=4, **shape), model, resume=checkpoint)["trainer"]
    assert "was saved by another trainer" in capfd.readouterr().out
    assert trainer.state.global_step == 4
    assert trainer.last_record.step == 2, "block 0 was open, is made again as block 1, and block 2 follows"
