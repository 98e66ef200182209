"""Every published method as a tiny run of the real trainer: 4 of 8 prompts a step, 8 rollouts each, recorded text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rollwise.methods import expand, get_method
from rollwise.types import IntArray, StepRecord
from tests.integrations.trl.support import RecordedRollwise, digits, rollwise, train

BUDGET, STEPS, SAVED = 32, 4, 2
"""Rollouts of a step, updates of a run, and after how many of them it is saved."""

SHAPE: dict[str, Any] = {
    "num_generations": 8,
    "gradient_accumulation_steps": 2,
    "max_steps": STEPS,
    "optim": "sgd",
    "learning_rate": 0.1,
    "lr_scheduler_type": "constant",
}
"""Plain SGD: Adam would blow rounding on near-zero gradients up to whole learning rates."""

SMALL: dict[str, dict[str, Any]] = {
    "gspo": {"num_iterations": 2},
    "tic_grpo": {"num_iterations": 2},
    "gvm": {"temperature": 1.3},
    "hora": {"allocator_settings": {"first": 2}},
    "reinforce_ada": {"allocator_settings": {"group": 2}},
    "ar3po": {"allocator_settings": {"stages": 2, "size": 2}},
    "optpo": {"answers": "last_character", "allocator_settings": {"right": 0.9, "wrong": 0.01, "increment": 2}},
    "replay": {"curator_settings": {"replay": {"warmup": 0, "share": 1.0}}},
    "pods": {"curator_settings": {"pods": {"keep": 3}}},
}
"""What a method needs to act within so few and so small steps."""


class Fresh(RecordedRollwise):
    """Recorded completions, others at every visit of a prompt; keeps every round's record."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.records: list[StepRecord] = []
        super().__init__(*args, **kwargs)

    def _share(self, wave: Any) -> IntArray:
        mine = super()._share(wave)
        self._mine = [draw + 50 * self._block for draw in self._mine]
        return mine

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """None: writing it takes longer than a step."""

    def _report(self, record: StepRecord, block: Any) -> None:
        self.records.append(record)
        super()._report(record, block)


def fields(preset: str, **changes: Any) -> dict[str, Any]:
    """Config fields of a method with the loss it was published with, and with `changes`, such as a lever switched off."""
    method = get_method(preset)
    own = SMALL.get(preset, {}) | changes
    if "allocator" in changes:
        own.pop("allocator_settings", None)
    return SHAPE | expand({"preset": preset, **own}) | method.trainer | own


def play(folder: Path, model: str, config: dict[str, Any], resume: str | None = None) -> dict[str, Any]:
    """Train; gradients of every update, final parameters, log entries, the record of every round, rollouts spent."""
    result = train(Fresh, rollwise(folder, **config), model, train_dataset=digits(8), resume=resume)
    trainer = result.pop("trainer")
    return result | {"records": trainer.records, "spent": trainer.rollouts_spent}
