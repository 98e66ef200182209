"""The settings a run must keep: between the processes that make it, and from a checkpoint to its resume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from accelerate.utils import gather_object
from trl import GRPOConfig

from rollwise.allocators.base import Allocator
from rollwise.integrations.trl.config import RollwiseGRPOConfig
from rollwise.types import RollwiseError

GEOMETRY = (
    "num_generations",
    "gradient_accumulation_steps",
    "per_device_train_batch_size",
    "steps_per_generation",
    "generation_batch_size",
    "num_iterations",
    "seed",
    "data_seed",
    "shuffle_dataset",
    "scale_rewards",
    "multi_objective_aggregation",
    "reward_weights",
)
"""TRL's settings that fix what a block is, in which order prompts come, and what an advantage means."""

OPTIMIZER = ("optim", "lr_scheduler_type")
"""What a checkpoint's optimizer and schedule are the state of."""
FOLLOWING = ("reduce_lr_on_plateau", "greedy")
"""Schedules that move the learning rate by the loss, from where it is: another one would have no effect."""

OURS = tuple(
    sorted({field.name for field in fields(RollwiseGRPOConfig)} - {field.name for field in fields(GRPOConfig)})
)

Settings = dict[str, Any]


def settings_of(
    args: RollwiseGRPOConfig, rule: Allocator, outcome: str, rewards: Sequence[str], rows: int | None
) -> Settings:
    """Name -> value of every setting that must not change within a run, in the order they are compared.

    `rule` and `outcome` may have been passed as objects and count by name; `rows` is the length of the training data,
    None for a stream. Free to change: lengths of the run, learning rate, logging, saving, evaluation, generation.
    """
    found = {name: getattr(args, name) for name in (*GEOMETRY, *OURS)}
    found |= {name: str(getattr(getattr(args, name), "value", getattr(args, name))) for name in OPTIMIZER}
    if found["lr_scheduler_type"] in FOLLOWING:
        found["learning_rate"] = args.learning_rate
    found |= {"allocator": rule.name, "outcome": outcome, "reward_funcs": list(rewards), "train_dataset": rows}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def check_same_on_all(settings: Settings) -> None:
    """Compare the processes' settings before the first step; a difference would send them different ways.

    Raises:
        RollwiseError: on every process, naming the first setting that differs, where, and its values.
    """
    first, *others = gather_object([settings])
    for rank, other in enumerate(others, start=1):
        if name := _first_difference(first, other):
            raise RollwiseError(
                f"{_titled(name)}: {first[name]!r} on process 0 and {other[name]!r} on process {rank}; "
                "start every process with the same settings"
            )


def check_resumed(saved: Settings, settings: Settings, folder: str) -> None:
    """Compare a checkpoint's settings with those of the run that resumes it.

    Raises:
        RollwiseError: naming the first setting that differs, its old and its new value.
    """
    if name := _first_difference(saved, settings):
        raise RollwiseError(
            f"{_titled(name)}: {saved[name]!r} in {folder}, {settings[name]!r} now; "
            f"resume with {saved[name]!r}, or start anew in another output_dir"
        )


def _first_difference(old: Settings, new: Settings) -> str | None:
    """Name of the first setting both know and value differently."""
    return next((name for name, value in new.items() if name in old and old[name] != value), None)


def _titled(name: str) -> str:
    return {"train_dataset": "train_dataset: rows"}.get(name, name)
