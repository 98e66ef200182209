"""Everything that can be found wrong with a run before its folder exists, and the trainer built from what is right."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollwise.cli.config import ArmSpec, RunConfig
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

GIVEN_BY_TRL = {"self", "prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric"}
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


@dataclass(frozen=True)
class Inputs:
    """What a run trains on: rows, rewards, and the model as a folder or hub id (and the GGUF file in it, if any)."""

    rows: Any
    eval_rows: Any | None
    rewards: list[Callable[..., Any]]
    outcome: Callable[..., Any] | str | None
    model: str
    gguf_file: str | None


def load_inputs(config: RunConfig) -> Inputs:
    """Load data and rewards and find the model.

    Raises:
        RollwiseError: naming the setting that does not fit.
    """
    from rollwise.tasks.datasets import load_rows
    from rollwise.tasks.models import locate_model
    from rollwise.tasks.rewards import resolve_reward

    rewards = [resolve_reward(name) for name in config.rewards]
    names = [reward.__name__ for reward in rewards]
    outcome: Callable[..., Any] | str | None = config.outcome
    if config.outcome is not None and config.outcome not in names:
        outcome = resolve_reward(config.outcome)
    model, gguf_file = locate_model(config.model, config.gguf_file)
    rows = load_rows(config.data)
    eval_rows = load_rows(config.eval_data) if config.eval_data is not None else None
    return Inputs(rows, eval_rows, rewards, outcome, model, gguf_file)


def check_inputs(config: RunConfig, inputs: Inputs) -> None:
    """Check what is loaded against the rest of the configuration.

    Raises:
        RollwiseError: for a reward without its column, fewer rows than a step has prompts, an unreadable model.
    """
    from rollwise.integrations.trl.dataset import with_index
    from rollwise.integrations.trl.outcomes import OutcomeReader

    judges = [*inputs.rewards, *([inputs.outcome] if callable(inputs.outcome) else [])]
    parts = {"data": inputs.rows, "eval_data": inputs.eval_rows}
    for part, rows in parts.items():
        for judge in judges if rows is not None else []:
            check_columns(judge, rows.column_names, part)
    with_index(inputs.rows, None)
    if len(inputs.rows) < config.prompts_per_step:
        raise RollwiseError(
            f"prompts_per_step: {config.prompts_per_step}, but data has {len(inputs.rows)} rows; give fewer prompts"
        )
    OutcomeReader(inputs.outcome, config.outcome_threshold, [reward.__name__ for reward in inputs.rewards])
    check_model(inputs)


def check_model(inputs: Inputs) -> None:
    """Read a model's configuration, tokenizer and the headers of its weights, not the weights.

    Raises:
        RollwiseError: if one cannot be read (a GGUF file is read when the run starts).
    """
    from safetensors import safe_open
    from transformers import AutoConfig, AutoTokenizer

    from rollwise.tasks.models import hub_reachable

    if inputs.gguf_file is not None:
        return
    folder = Path(inputs.model)
    options = {} if folder.is_dir() or hub_reachable() else {"local_files_only": True}
    try:
        AutoConfig.from_pretrained(inputs.model, **options)
        AutoTokenizer.from_pretrained(inputs.model, **options)
        for weights in sorted(folder.glob("*.safetensors")) if folder.is_dir() else []:
            with safe_open(str(weights), framework="pt"):
                pass
    # Each library below has errors of its own; all mean that this model cannot be had.
    except Exception as error:
        reason = "not in the hub's cache, and the hub is offline" if options else f"{type(error).__name__}: {error}"
        raise RollwiseError(f"model: {inputs.model} cannot be read ({' '.join(reason.split())[:200]})") from error


def is_adaptive(arm: ArmSpec) -> bool:
    """Whether the arm's sizes may differ from G."""
    return arm.allocator not in ("uniform", "observe")


def check_columns(reward: Callable[..., Any], columns: Iterable[str], part: str) -> None:
    """Raise `RollwiseError` where a reward function requires an argument that is neither TRL's nor a column."""
    held = set(columns)
    for name, parameter in inspect.signature(reward).parameters.items():
        needed = parameter.default is parameter.empty and parameter.kind in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        )
        if needed and name not in held | GIVEN_BY_TRL:
            called = getattr(reward, "__name__", "reward")
            raise RollwiseError(f"rewards: {called} needs a column {name!r}; {part} has {', '.join(sorted(held))}")


def check_trainer_fields(fields: Iterable[str]) -> None:
    """Raise `RollwiseError` for a `trainer:` field that `GRPOConfig` lacks or that has a setting of its own."""
    from trl import GRPOConfig

    known = {field.name for field in dataclasses.fields(GRPOConfig)}
    for field in fields:
        if field in OWN_SETTING:
            raise RollwiseError(f"trainer.{field}: set {OWN_SETTING[field]} at the top level instead")
        if field in BY_METHOD:
            raise RollwiseError(f"trainer.{field}: set it under method instead")
        if field not in known:
            raise RollwiseError(f"trainer.{field}: TRL's GRPOConfig has no such field; {nearest(field, known)}")


def training_settings(config: RunConfig, arm: ArmSpec, folder: Path) -> dict[str, Any]:
    """Keyword arguments of `RollwiseGRPOConfig` for one arm.

    A step is one generation block of N rollouts and one update; `trainer.per_device_train_batch_size` splits both into
    passes that fit in memory.

    Raises:
        RollwiseError: for an unknown `trainer` field, or a batch that does not divide N.
    """
    import torch

    check_trainer_fields(config.trainer)
    gpu = torch.cuda.is_available()
    rows = config.trainer.get("per_device_train_batch_size", config.budget)
    if not isinstance(rows, int) or rows < 1 or config.budget % rows:
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
        "reward_weights": config.reward_weights,
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
    return settings | arm.model_dump(exclude={"name"}) | config.trainer


def make_config(config: RunConfig, arm: ArmSpec, folder: Path) -> Any:
    """The `RollwiseGRPOConfig` of one arm; what TRL finds wrong becomes a `RollwiseError` of one line."""
    from rollwise.integrations.trl import RollwiseGRPOConfig
    from rollwise.integrations.trl.startup import check_batch

    try:
        made = RollwiseGRPOConfig(**training_settings(config, arm, folder))
        check_batch(config.prompts_per_step, config.rollouts_per_prompt, adaptive=is_adaptive(arm))
        return made
    except RollwiseError:
        raise
    except (ValueError, TypeError) as error:
        raise RollwiseError(f"trainer: {str(error).strip().splitlines()[0]}") from error


def make_trainer(config: RunConfig, arm: ArmSpec, inputs: Inputs, run: Path) -> Any:
    """The trainer of one arm, writing into `run/<arm>`."""
    from rollwise.integrations.trl import RollwiseGRPOTrainer
    from rollwise.tasks.models import materialise

    model = inputs.model
    if inputs.gguf_file is not None:
        model = str(materialise(inputs.model, run / "_model", gguf_file=inputs.gguf_file))
    return RollwiseGRPOTrainer(
        model=model,
        reward_funcs=inputs.rewards,
        args=make_config(config, arm, run / arm.name),
        train_dataset=inputs.rows,
        outcome=inputs.outcome,
    )
