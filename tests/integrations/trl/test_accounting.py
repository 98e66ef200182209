"""Every completion that is generated is counted once: by the trainer, in the log and in the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.trl.support import RecordedRollwise, digits, rollwise, train


class Counted(RecordedRollwise):
    """Counts rows where they are generated, training and evaluation apart."""

    made = evaluated = 0

    def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **kwargs: Any) -> Any:
        if self.model.training:
            self.made += len(prompt_ids)
        else:
            self.evaluated += len(prompt_ids)
            self._mine = list(range(len(prompt_ids)))
        return super()._generate_single_turn(prompt_ids, *rest, **kwargs)


@pytest.mark.parametrize("allocator", ["adaroll", "uniform"])
@pytest.mark.parametrize(
    ("changes", "paid"),
    [
        ({"num_iterations": 2, "max_steps": 3}, 2 * 16),
        ({"steps_per_generation": 4, "max_steps": 3}, 2 * 32),
        ({"steps_per_generation": 1, "max_steps": 3}, 6 * 8),
        ({"steps_per_generation": 3, "max_steps": 4}, 3 * 24),
        ({"steps_per_generation": 2, "num_iterations": 3, "gradient_accumulation_steps": 1, "max_steps": 7}, 2 * 16),
        # two epochs of 22 rows: five full blocks of 4 prompts each, two rows left over
        ({"num_train_epochs": 2, "max_steps": -1}, 10 * 16),
        ({"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 4, "max_steps": 2}, 2 * 16),
    ],
    ids=["iterations", "long blocks", "short blocks", "uneven blocks", "stopped inside", "epochs", "evaluation"],
)
def test_spent_logged_and_recorded_are_what_was_generated(
    model: str, tmp_path: Path, allocator: str, changes: dict[str, Any], paid: int
) -> None:
    data = {"train_dataset": digits(22), "eval_dataset": digits(4)}
    trainer = train(Counted, rollwise(tmp_path, allocator=allocator, **changes), model, **data)["trainer"]
    lines = [json.loads(line) for line in (tmp_path / "rollwise" / "ledger.jsonl").read_text().splitlines()]
    waves = [entry["id"] for line in lines if line["type"] == "wave" for entry in line["rollouts"]]
    assert trainer.made == paid
    assert trainer.rollouts_spent == paid
    assert len(waves) == len(set(waves)) == paid
    assert sum(line["type"] == "rollout" for line in lines) == paid
    assert [entry for entry in trainer.state.log_history if "loss" in entry][-1]["rollwise/rollouts_spent"] == paid
    assert (trainer.evaluated > 0) == ("eval_strategy" in changes)
