"""A `GRPOTrainer` that can be stopped anywhere: the run that resumes is the run that was stopped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from rollwise.integrations.trl.checkpoint import (
    EpochSampler,
    as_arrays,
    as_tensors,
    load_state,
    save_state,
    to_device,
)
from rollwise.integrations.trl.settings import Settings, check_resumed
from rollwise.integrations.trl.trajectory import TrajectoryTrainer
from rollwise.types import RollwiseError


class ResumableTrainer(TrajectoryTrainer, ABC):
    """Saves and restores, beside TRL's own files, the step counter, the open block, and what a subclass carries.

    A subclass sets `_settings` and gives `_state`, `_restore` and `_restart`.
    """

    num_generations: int
    _settings: Settings

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What the run carries from block to block."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Take over what `_state` gave."""

    @abstractmethod
    def _restart(self, blocks: int) -> None:
        """Go on from a checkpoint without our state, after so many blocks, the open one included."""

    def _get_train_sampler(self, dataset: Any = None) -> EpochSampler:
        return EpochSampler(super()._get_train_sampler(dataset), lambda: int((self.state.epoch or 0.0) + 1e-9))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        # before the parent's files: a checkpoint that lacks ours must not look complete
        if not self.args.save_only_model:
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            state = {
                "settings": self._settings,
                "step": self._step,
                "buffered": self._buffered_inputs,
                "carried": as_tensors(self._state()),
            }
            save_state(folder, self.accelerator.process_index, self.accelerator.num_processes, state)
        super()._save_checkpoint(model, trial)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """Load everything, or refuse.

        Raises:
            RollwiseError: for a state that is damaged, or of a run with other settings.
        """
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        state = load_state(checkpoint, self.accelerator.process_index, self.accelerator.num_processes)
        if state is None:
            print(f"rollwise: {checkpoint} was not saved by rollwise: its open block is generated again", flush=True)
            self._step = self.state.global_step * self.args.gradient_accumulation_steps
            self._restart(-(-self._step // (self.args.steps_per_generation * self.num_iterations)))
            return
        check_resumed(state["settings"], self._settings, checkpoint)
        try:
            self._restore(as_arrays(state["carried"]))
        except (RollwiseError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            why = error if isinstance(error, RollwiseError) else f"{type(error).__name__}: {error}"
            raise RollwiseError(
                f"resume_from_checkpoint: {checkpoint} holds a state that does not fit ({why}); take another checkpoint"
            ) from error
        self._step = state["step"]
        self._buffered_inputs = to_device(state["buffered"], self.accelerator.device)
