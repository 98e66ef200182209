"""Selectors and curators through the real trainer call: that their mechanism acts, and what the optimizer gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rollwise.integrations.trl import RollwiseGRPOConfig, RollwiseGRPOTrainer
from rollwise.integrations.trl.rows import assign
from rollwise.methods import expand
from rollwise.types import RollwiseError, StepRecord

from .support import Gradients, digits, save_absolute_model, save_model, settings, tokenizer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


def one_in_three(completions: list[str], **_: Any) -> list[float]:
    """About a third of completions succeed, whatever the prompt."""
    return [float(sum(map(ord, text)) % 3 == 0) for text in completions]


def one_in_seven(completions: list[str], **_: Any) -> list[float]:
    """So few succeed that about half of all groups of four are dead."""
    return [float(sum(map(ord, text)) % 7 == 0) for text in completions]


class Recorded(RollwiseGRPOTrainer):
    """Keeps every round's record, and every batch the loss saw."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.records: list[StepRecord] = []
        self.batches: list[dict[str, Any]] = []
        self.ratios: list[tuple[torch.Tensor, torch.Tensor]] = []
        super().__init__(*args, **kwargs)

    def _report(self, record: StepRecord, block: Any) -> None:
        self.records.append(record)
        super()._report(record, block)

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        self.batches.append(inputs)
        return super()._compute_loss(model, inputs)


def trainer(
    model: str, folder: Path, preset: str | None = None, reward: Any = one_in_three, **changes: Any
) -> Recorded:
    chosen = expand({"preset": preset} if preset else {"allocator": "uniform"})
    args = RollwiseGRPOConfig(**settings(folder, **(chosen | {"max_steps": 3} | changes)))
    return Recorded(model, reward, args, digits(), processing_class=tokenizer())


def test_replay_trains_stored_rows_in_dead_rows_places(model: str, tmp_path: Path) -> None:
    """Ratios differ from 1 on replayed rows only, and never more rows train than were generated."""
    run = trainer(
        model,
        tmp_path,
        "replay",
        curator_settings={"replay": {"warmup": 0, "share": 1.0}},
        learning_rate=3e-2,
        gradient_accumulation_steps=1,
        per_device_train_batch_size=16,
    )
    seen: list[tuple[int, np.ndarray]] = []

    def watch(batch: dict[str, Any]) -> None:
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
        held = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
        with torch.no_grad():
            now = run._get_per_token_logps_and_entropies(run.model, ids, held, batch["completion_ids"].size(1))[0]
        drift = ((now - batch["old_per_token_logps"]).abs() * batch["completion_mask"]).amax(1)
        seen.append((run.state.global_step, drift.numpy()))

    plain = run._compute_loss
    run._compute_loss = lambda net, inputs: (watch(inputs), plain(net, inputs))[1]  # type: ignore[method-assign]
    run.train()
    trained = [record for record in run.records if not record.idle]
    assert sum(len(record.stored) for record in trained) > 0
    for record, (_, drift) in zip(trained, seen, strict=True):
        assert len(record.trained) + len(record.stored) <= 16
        assert {row.step for row in record.stored} <= set(range(record.step))
        assert (drift > 1e-4).sum() == len(record.stored)


def test_dynamic_sampling_waits_and_drops_dead_groups(model: str, tmp_path: Path) -> None:
    run = trainer(model, tmp_path, "dapo", max_steps=2, reward=one_in_seven)
    run.train()
    assert run.state.global_step == 2
    assert len(run.records) > 2, "some rounds were idle"
    assert run.rollouts_spent == 16 * len(run.records)
    for batch in run.batches:
        assert bool((batch["advantages"] != 0).any())
    full = [record for record in run.records if not record.idle]
    assert all(len(record.trained) + len(record.stored) == 16 for record in full)


def test_resampling_repeats_prompts_in_groups_of_their_own(model: str, tmp_path: Path) -> None:
    run = trainer(model, tmp_path, "codapo", max_steps=2)
    run.train()
    first, second = run.records
    assert len(set(first.prompt_ids)) == 4
    assert len(set(second.prompt_ids)) == 1, "the best quarter of 4, four times"
    assert len({rollout.group_id for rollout in second.rollouts}) == 4
    assert all(rollout.logprob is not None and rollout.logprob < 0 for rollout in first.rollouts)
    live = first.advantages != 0
    assert not live.any() or (first.factors["curator"][live] != 1).all()


def test_a_selector_takes_its_prompts_from_the_data_set(model: str, tmp_path: Path) -> None:
    run = trainer(model, tmp_path, "mopps", max_steps=3, prompt_id_column="prompt")
    run.train()
    prompts = set(digits()["prompt"])
    for record in run.records:
        assert set(record.prompt_ids) <= prompts
        assert len(set(record.prompt_ids)) == 4


def test_cero_ends_the_run_when_its_budget_does(model: str, tmp_path: Path) -> None:
    run = trainer(model, tmp_path, "cero", max_steps=3, selector_settings={"rounds": 6, "units": 4 * 2 * 2})
    run.train()
    assert run.selection_done
    assert run.state.global_step == 2
    assert run.rollouts_spent == 32
    assert len({key for record in run.records for key in record.prompt_ids}) == 8, "nobody twice in the first pass"


def test_fewer_rows_than_a_step_weigh_as_they_would_alone(model: str, tmp_path: Path) -> None:
    """Gradients of a block with masked rows equal those of the same rows in a block of their own size."""
    found = []
    for name, accumulation in (("one", 1), ("eight", 8)):
        run = trainer(
            model,
            tmp_path / name,
            "pods",
            max_steps=1,
            loss_type="grpo",
            curator_settings={"pods": {"keep": 3}},
            reward=lambda completions, **_: [len(text) % 5 / 4 for text in completions],
            outcome_threshold=0.5,
            per_device_train_batch_size=16 // accumulation,
            gradient_accumulation_steps=accumulation,
            max_grad_norm=0.0,
        )
        gradients = Gradients()
        run.add_callback(gradients)
        run.train()
        assert len(run.records[0].trained) == 12
        found.append(gradients)
        assert sum(len(batch["advantages"]) for batch in run.batches) == (12 if accumulation == 1 else 16)
    one, several = (entry.steps[0] for entry in found)
    for first, second in zip(one, several, strict=True):
        assert torch.allclose(first, second, atol=1e-6)


def test_masked_rows_are_fewer_than_a_multiple_and_change_no_mean(model: str, tmp_path: Path) -> None:
    run = trainer(
        model,
        tmp_path,
        "replay",
        max_steps=2,
        reward=one_in_seven,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=8,
    )
    run.train()
    blocks = [record for record in run.records if not record.idle]
    for k, record in enumerate(blocks):
        batches = run.batches[8 * k : 8 * k + 8]
        real = len(record.trained) + len(record.stored)
        rows = sum(len(batch["advantages"]) for batch in batches)
        masked = sum(int((batch["completion_mask"].sum(1) == 0).sum()) for batch in batches)
        assert rows == -(-real // 8) * 8
        assert masked == rows - real
        assert float(batches[0]["rollwise_scale"]) == pytest.approx(rows / real)
        counted = sum(int(batch["completion_mask"].sum()) for batch in batches)
        assert int(batches[0]["num_items_in_batch"]) == counted


def test_rows_stay_where_they_were_made_if_they_can() -> None:
    assert assign([0, 0, 0, 1], 2, 2) == [[0, 1], [3, 2]]
    assert assign([1, 1, 1], 2, 2) == [[2], [0, 1]]
    assert assign([0, 1, 0, 1], 2, 2) == [[0, 2], [1, 3]]


def test_curators_that_store_rows_need_relative_positions(tmp_path: Path) -> None:
    absolute = save_absolute_model(tmp_path / "absolute")
    with pytest.raises(RollwiseError, match="absolute positions"):
        trainer(absolute, tmp_path / "run", "replay")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"curators": ["codapo", "dynamic"]}, "exclude each other"),
        ({"curators": ["replya"]}, "did you mean 'replay'"),
        ({"selector": "cerro"}, "did you mean 'cero'"),
        ({"curators": ["pods"], "curator_settings": {"pods": {"keep": 1}}}, "pods keep"),
    ],
)
def test_levers_that_cannot_be_used_are_refused_at_construction(
    model: str, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(RollwiseError, match=message):
        trainer(model, tmp_path, **changes)


def test_advantages_of_several_rewards_are_not_computed_anew(model: str, tmp_path: Path) -> None:
    with pytest.raises(RollwiseError, match="normalize_then_sum does not go with pods"):
        trainer(model, tmp_path, curators=["pods"], multi_objective_aggregation="normalize_then_sum")
