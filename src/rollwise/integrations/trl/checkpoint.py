"""What a checkpoint needs beside TRL's own files, so that a resumed run is the run that was stopped.

TRL keeps the generated block and its step counter in memory only, and its sampler starts again at the first epoch's
order. Saved per process: counter, buffered block (tensors), the adapter's own state, and how far the ledger was. Loaded
without pickle's code execution (`weights_only`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Sampler

from rollwise.types import RollwiseError

FORMAT = 3
CONTENT: dict[str, Any] = {
    "world": int,
    "settings": dict,
    "step": int,
    "buffered": (list, type(None)),
    "carried": dict,
    "ledger": (dict, type(None)),
}
"""What a state holds, by name, and the type of each part."""


def state_path(folder: str | Path, rank: int) -> Path:
    """Where process `rank` keeps its state inside a checkpoint folder."""
    return Path(folder) / f"rollwise_state_{rank}.pt"


def save_state(folder: str | Path, rank: int, world: int, state: dict[str, Any]) -> None:
    """Write one process's state (tensors, numbers, strings, lists, dicts); complete or not there at all."""
    path = state_path(folder, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    torch.save({"format": FORMAT, "world": world, **state}, scratch)
    scratch.replace(path)


def load_state(folder: str | Path, rank: int, world: int) -> dict[str, Any] | None:
    """Read one process's state, None where the checkpoint was not written by rollwise.

    Raises:
        RollwiseError: if it is damaged, of another format, or from a run with another number of processes.
    """
    path = state_path(folder, rank)
    if not path.exists():
        if state_path(folder, 0).exists():
            raise RollwiseError(
                f"resume_from_checkpoint: {folder} holds no state for process {rank}; use as many as before"
            )
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise RollwiseError(
            f"resume_from_checkpoint: {path} is damaged ({type(error).__name__}); take another one"
        ) from None
    if not isinstance(state, dict):
        raise RollwiseError(f"resume_from_checkpoint: {path} holds no rollwise state; take another checkpoint")
    if state.get("format") != FORMAT:
        raise RollwiseError(
            f"resume_from_checkpoint: {path} has format {state.get('format')}; this version reads {FORMAT}"
        )
    wrong = [name for name, kind in CONTENT.items() if not isinstance(state.get(name, ...), kind)]
    if wrong:
        raise RollwiseError(
            f"resume_from_checkpoint: {path} lacks {wrong[0]!r} or holds a wrong one; take another checkpoint"
        )
    if state["world"] != world:
        raise RollwiseError(
            f"resume_from_checkpoint: {folder} is from {state['world']} processes; start as many, not {world}"
        )
    return state


def as_tensors(state: Any) -> Any:
    """A state with its numpy arrays as tensors, which load without executing code."""
    if isinstance(state, dict):
        return {key: as_tensors(value) for key, value in state.items()}
    return torch.from_numpy(state) if isinstance(state, np.ndarray) else state


def as_arrays(state: Any) -> Any:
    """The inverse of `as_tensors`."""
    if isinstance(state, dict):
        return {key: as_arrays(value) for key, value in state.items()}
    return state.numpy() if isinstance(state, torch.Tensor) else state


def to_device(buffered: list[dict[str, Any]] | None, device: torch.device) -> list[dict[str, Any]] | None:
    """A buffered block's tensors on the device that trains."""
    if buffered is None:
        return None
    return [
        {key: value.to(device) if isinstance(value, torch.Tensor) else value for key, value in part.items()}
        for part in buffered
    ]


class EpochSampler(Sampler[int]):
    """TRL's sampler, which knows the epoch: a run resumed in epoch 2 draws epoch 2's order, not epoch 1's again."""

    def __init__(self, base: Any, epoch: Callable[[], int]) -> None:
        """`base` is TRL's `RepeatSampler`; `epoch()` says which epoch (from 0) is about to be drawn."""
        self.base = base
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.base)

    def __iter__(self) -> Iterator[int]:
        if self.base.shuffle:
            self.base.generator.manual_seed(self.base.seed)
            for _ in range(self.epoch()):
                torch.randperm(self.base.num_samples, generator=self.base.generator)
        yield from self.base
