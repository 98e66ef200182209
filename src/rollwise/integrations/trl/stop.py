"""Ending a run whose selector has nothing more to select."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback


class StopWhenDone(TrainerCallback):
    """Stops the trainer once its selector is done and the open block is used up."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        every = args.steps_per_generation * args.num_iterations
        if self._trainer.selection_done and self._trainer._step % every == 0:
            control.should_training_stop = True
