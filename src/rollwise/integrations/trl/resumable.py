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
from rollwise.integrations.trl.manifest import fault_of, last_whole, step_of, write_manifest
from rollwise.integrations.trl.optimizer import Hyperparameters
from rollwise.integrations.trl.settings import Settings, check_resumed
from rollwise.integrations.trl.trajectory import TrajectoryTrainer
from rollwise.ledger import Ledger, Mark
from rollwise.types import RollwiseError


class ResumableTrainer(TrajectoryTrainer, ABC):
    """Saves and restores, beside TRL's own files, the step counter, the open block, and what a subclass carries.

    A subclass sets `_settings`, `_ledger` and `_block`, and gives `_state`, `_restore` and `_restart`.
    """

    num_generations: int
    _settings: Settings
    _ledger: Ledger | None
    _block: int
    _reached = 0
    """Updates that were made before the run was resumed."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What the run carries from block to block."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Take over what `_state` gave."""

    @abstractmethod
    def _restart(self, blocks: int) -> None:
        """Go on from a checkpoint without our state, after so many blocks, the open one included."""

    @property
    def rollwise_folder(self) -> Path:
        """Where the ledger lives: `output_dir/rollwise`."""
        return Path(self.args.output_dir) / "rollwise"

    def _get_train_sampler(self, dataset: Any = None) -> EpochSampler:
        return EpochSampler(super()._get_train_sampler(dataset), lambda: int((self.state.epoch or 0.0) + 1e-9))

    def train(self, resume_from_checkpoint: str | bool | None = None, *positional: Any, **kwargs: Any) -> Any:
        """The parent's training, from a checkpoint that is whole (of those in `output_dir` the last, where True is given).

        Raises:
            RollwiseError: a checkpoint that is damaged, not saved to the end, or mixed with another.
        """
        checkpoint = self._find(resume_from_checkpoint) if resume_from_checkpoint else None
        self._reached = step_of(checkpoint) if checkpoint else 0
        return super().train(str(checkpoint) if checkpoint else None, *positional, **kwargs)

    def _find(self, given: str | bool) -> Path:
        """The checkpoint to go on from."""
        if not isinstance(given, bool):
            fault = fault_of(Path(given), stock=True)
            if fault:
                raise RollwiseError(f"resume_from_checkpoint: {given}: {fault}; delete it and take another")
            return Path(given)
        found, passed_over = last_whole(Path(self.args.output_dir), stock=True)
        self._say(*passed_over)
        if found is None:
            raise RollwiseError(
                f"resume_from_checkpoint: {self.args.output_dir} holds no whole checkpoint; start anew"
            )
        return found

    def _say(self, *lines: str) -> None:
        if self.accelerator.is_main_process:
            for line in lines:
                print(f"rollwise: {line}", flush=True)

    def set_initial_training_values(self, *given: Any) -> Any:
        """The parent's numbers; no epoch where nothing is left to train, since the parent counts only after a step."""
        epochs, *others = super().set_initial_training_values(*given)
        max_steps = others[-1]
        return (0 if 0 < max_steps <= self._reached else epochs, *others)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        # before the parent's files: a checkpoint that lacks ours must not look complete
        if not self.args.save_only_model:
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            state = {
                "settings": self._settings,
                "step": self._step,
                "buffered": self._buffered_inputs,
                "carried": as_tensors(self._state()),
                "ledger": None if self._ledger is None else self._ledger.mark(),
            }
            save_state(folder, self.accelerator.process_index, self.accelerator.num_processes, state)
        super()._save_checkpoint(model, trial)

    def _save_rng_state(self, output_dir: str) -> None:
        """The parent's last files but `trainer_state.json`, and with them the manifest of all."""
        super()._save_rng_state(output_dir)
        self.accelerator.wait_for_everyone()
        if self.args.should_save:
            write_manifest(Path(output_dir), self.state.global_step)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """Load everything, or refuse.

        Raises:
            RollwiseError: for a state that is damaged, or of a run with other settings or another ledger.
        """
        if checkpoint is None:
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        set_now = Hyperparameters(self.optimizer, self.lr_scheduler)
        super()._load_optimizer_and_scheduler(checkpoint)
        set_now.apply(self.optimizer, self.lr_scheduler)
        # how often to log, save and evaluate: the parent has just taken the checkpoint's word for it
        self.state.compute_steps(self.args, self.state.max_steps)
        state = load_state(checkpoint, self.accelerator.process_index, self.accelerator.num_processes)
        if state is None:
            self._say(
                f"{checkpoint} was saved by another trainer or holds the model alone: its open block is generated again, "
                "and beliefs start afresh"
            )
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
        if state["ledger"] is not None:
            self._go_on_with_ledger(checkpoint, state["ledger"])

    def _go_on_with_ledger(self, checkpoint: str, mark: Mark) -> None:
        """Open the run's ledger, which must hold what it held at the checkpoint.

        A run that goes on from the checkpoint of another, in an `output_dir` of its own, starts a ledger of its own.
        """
        path = self.rollwise_folder / "ledger.jsonl"
        if not path.exists() and Path(checkpoint).resolve().parent != Path(self.args.output_dir).resolve():
            self._say(f"{path} is new: {mark['rollouts']} rollouts were paid for in the run of {checkpoint}")
            return
        self._ledger = Ledger.reopen(path, mark, Path(checkpoint).name)
        self._ledger.rewind(self._block)
