"""From a run's configuration to TRL's: which fields may be set, of which type, and what a run sets itself."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollwise.cli.config import ArmSpec, RunConfig
from rollwise.cli.values import check_finite, read_as
from rollwise.methods import get_method
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

OWN_SETTING = {
    "num_generations": "rollouts_per_prompt",
    "generation_batch_size": "prompts_per_step",
    "steps_per_generation": "prompts_per_step",
    "gradient_accumulation_steps": "prompts_per_step",
    "max_steps": "steps",
    "output_dir": "output",
    "reward_weights": "reward_weights",
    "learning_rate": "learning_rate",
    "max_completion_length": "max_completion_length",
    "temperature": "temperature",
    "seed": "seed",
    "loss_type": "loss_type",
    "scale_rewards": "scale_rewards",
}
"""Fields of `GRPOConfig` that a run sets under a name of its own."""
BY_METHOD = tuple(name for name in ArmSpec.model_fields if name != "name")
CHOICES = {
    "loss_type": ("bnpo", "cispo", "dapo", "dr_grpo", "grpo", "luspo", "sapo", "vespo"),
    "importance_sampling_level": ("token", "sequence", "trajectory"),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
}
"""Words that TRL reads only when the first loss is computed."""
FEWEST = {"num_iterations": 1, "logging_steps": 1, "dataloader_num_workers": 0, "beta": 0}
"""Numbers below which TRL trains nothing, logs nothing, or fails in mid-run."""
SHARES = ("top_p", "min_p")
"""Fields that are a probability, which the sampler does not check."""
UNFIT = {
    "resume_from_checkpoint": "a run starts anew in a folder of its own; rollwise train --resume RUN goes on with one",
    "push_to_hub": "a run uploads nothing; upload its model/ folder afterwards",
    "num_train_epochs": "set steps at the top level, a run's length",
}
"""Fields that a run would not obey, and what to do instead."""
EVALUATION = ("eval_strategy", "do_eval", "eval_on_start")


@functools.cache
def field_types() -> dict[str, Any]:
    """Name -> type of every field of TRL's `GRPOConfig`."""
    from trl import GRPOConfig

    hints = typing.get_type_hints(GRPOConfig)
    return {field.name: hints[field.name] for field in dataclasses.fields(GRPOConfig)}


def read_trainer_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The `trainer:` fields with values of their own types ("1e-3", which YAML reads as text, is a number).

    Raises:
        RollwiseError: for a field that `GRPOConfig` lacks, that has a setting of its own, or whose value does not fit.
    """
    known = field_types()
    found = {}
    for field, value in fields.items():
        if field in OWN_SETTING:
            raise RollwiseError(f"trainer.{field}: set {OWN_SETTING[field]} at the top level instead")
        if field in BY_METHOD:
            raise RollwiseError(f"trainer.{field}: set it under method instead")
        if field not in known:
            raise RollwiseError(f"trainer.{field}: TRL's GRPOConfig has no such field; {nearest(field, known)}")
        if field in UNFIT and value is not None and value is not False:
            raise RollwiseError(f"trainer.{field}: {UNFIT[field]}")
        check_finite(value, f"trainer.{field}")
        found[field] = read_as(known[field], value, f"trainer.{field}")
        if field in FEWEST and found[field] is not None and found[field] < FEWEST[field]:
            raise RollwiseError(f"trainer.{field}: {value}; give {FEWEST[field]} or more")
        if field in SHARES and found[field] is not None and not 0 <= found[field] <= 1:
            raise RollwiseError(f"trainer.{field}: {value}; give a number from 0 to 1")
        if field == "generation_kwargs" and "num_return_sequences" in (found[field] or {}):
            raise RollwiseError(
                f"trainer.{field}.num_return_sequences: set rollouts_per_prompt at the top level instead"
            )
        if field in EVALUATION and str(found[field]) not in ("no", "False"):
            raise RollwiseError(f"trainer.{field}: a run is evaluated before and after training; leave it out")
    return found


def check_words(config: RunConfig) -> None:
    """Raise `RollwiseError` for a word that TRL would stumble over only in mid-run."""
    for field, valid in CHOICES.items():
        place = "loss_type" if field == "loss_type" else f"trainer.{field}"
        word = config.loss_type if field == "loss_type" else config.trainer.get(field, valid[0])
        if word not in valid:
            raise RollwiseError(f"{place}: no {word!r}; {nearest(str(word), valid)}")


def training_settings(config: RunConfig, arm: ArmSpec, folder: Path) -> dict[str, Any]:
    """Keyword arguments of `RollwiseGRPOConfig` for one arm.

    A step is one generation block of N rollouts and one update; `trainer.per_device_train_batch_size` splits both into
    passes that fit in memory.

    Raises:
        RollwiseError: for an unknown `trainer` field, or a batch that does not divide N.
    """
    import torch

    given = read_trainer_fields(config.trainer)
    gpu = torch.cuda.is_available()
    rows = given.get("per_device_train_batch_size", config.budget)
    if rows < 1 or config.budget % rows:
        raise RollwiseError(
            f"trainer.per_device_train_batch_size: {rows} does not divide the {config.budget} rollouts of a step; "
            f"give a divisor, such as {config.rollouts_per_prompt}"
        )
    settings = {
        "output_dir": str(folder),
        "num_generations": config.rollouts_per_prompt,
        "per_device_train_batch_size": rows,
        "gradient_accumulation_steps": config.budget // rows,
        "max_steps": config.steps,
        "learning_rate": config.learning_rate,
        "max_completion_length": config.max_completion_length,
        "temperature": config.temperature,
        "seed": config.seed,
        "loss_type": config.loss_type,
        "scale_rewards": config.scale_rewards,
        "reward_weights": reward_weights(config),
        "outcome_threshold": config.outcome_threshold,
        "logging_steps": 1,
        "log_completions": True,
        "num_completions_to_print": 0,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": not gpu,
        "bf16": gpu,
        "gradient_checkpointing": gpu,
    }
    if "save_steps" in given:
        settings["save_strategy"] = "steps"
    published = {key: value for key, value in preset_options(arm.preset).items() if key not in config.model_fields_set}
    return settings | published | arm.model_dump(exclude={"name", "preset"}) | given


def reward_weights(config: RunConfig) -> list[float] | None:
    """TRL's weights, one per reward function; the penalty on long answers comes last and weighs 1."""
    if config.reward_weights is None or config.overlong is None:
        return config.reward_weights
    return [*config.reward_weights, 1.0]


def preset_options(name: str | None) -> dict[str, Any]:
    """Loss and clipping that a method was published with; what the run's file says itself goes before them."""
    return dict(get_method(name).trainer) if name else {}


def make_config(config: RunConfig, arm: ArmSpec, folder: Path, **changes: Any) -> Any:
    """The `RollwiseGRPOConfig` of one arm, with `changes` on top; what TRL finds wrong becomes one line.

    Raises:
        RollwiseError: naming the setting.
    """
    from rollwise.integrations.trl import RollwiseGRPOConfig
    from rollwise.integrations.trl.startup import check_batch

    check_words(config)
    settings = training_settings(config, arm, folder) | changes
    try:
        made = RollwiseGRPOConfig(**settings)
    except RollwiseError:
        raise
    # transformers and accelerate check some fields by ImportError, RuntimeError, KeyError and json's errors.
    except Exception as error:
        raise RollwiseError(f"trainer: {first_line(error)}") from error
    check_batch(config.prompts_per_step, config.rollouts_per_prompt, adaptive=is_adaptive(arm))
    return made


def is_adaptive(arm: ArmSpec) -> bool:
    """Whether the arm's sizes may differ from G."""
    return arm.allocator not in ("uniform", "observe")


def first_line(error: BaseException) -> str:
    """The first line of an error, or its type where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
