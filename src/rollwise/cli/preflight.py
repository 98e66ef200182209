"""What a run trains on, loaded and checked before its folder exists."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollwise.cli.config import RunConfig
from rollwise.cli.values import short
from rollwise.types import RollwiseError

GIVEN_BY_TRL = ("prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric")
NOT_PASSED_ON = ("prompt", "completion", "completion_ids")
"""Columns of the data that TRL does not give to reward functions."""


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
    names = list(map(name_of, rewards))
    outcome: Callable[..., Any] | str | None = config.outcome
    if config.outcome is not None and config.outcome not in names:
        try:
            outcome = resolve_reward(config.outcome)
        except RollwiseError as error:
            raise RollwiseError(f"outcome: {str(error).removeprefix('rewards: ')}") from None
    if config.overlong is not None:
        # the penalty trains and is no verdict: without an outcome of its own, the only reward stays what success is
        outcome = names[0] if outcome is None else outcome
        rewards.append(overlong_penalty(config.max_completion_length, config.overlong.cache))
    called = list(map(name_of, rewards))
    for name in called:
        if called.count(name) > 1:
            raise RollwiseError(f"rewards: two functions are called {name!r}; give each a name of its own")
    model, gguf_file = locate_model(config.model, config.gguf_file)
    rows = load_rows(config.data)
    eval_rows = load_rows(config.eval_data) if config.eval_data is not None else None
    return Inputs(rows, eval_rows, rewards, outcome, model, gguf_file)


def overlong_penalty(longest: int, cache: int) -> Callable[..., Any]:
    """TRL's form of DAPO's penalty: 0 up to longest - cache tokens, then falling evenly to -1 at `longest`."""
    from trl.rewards import get_soft_overlong_punishment

    return get_soft_overlong_punishment(max_completion_len=longest, soft_punish_cache=cache)


def name_of(function: Any) -> str:
    """What a function is called."""
    return str(getattr(function, "__name__", type(function).__name__))


def check_inputs(config: RunConfig, inputs: Inputs) -> None:
    """Check what is loaded against the rest of the configuration.

    Raises:
        RollwiseError: for a reward that cannot be called, malformed prompts, fewer rows than a step has prompts, an
            unreadable model, or prompts its tokenizer has no template for.
    """
    from rollwise.integrations.trl.dataset import with_index
    from rollwise.integrations.trl.outcomes import OutcomeReader

    judges = {"rewards": inputs.rewards, "outcome": [inputs.outcome] if callable(inputs.outcome) else []}
    parts = {"data": inputs.rows, "eval_data": inputs.eval_rows}
    for part, rows in parts.items():
        if rows is None:
            continue
        for setting, functions in judges.items():
            for function in functions:
                check_columns(function, rows.column_names, part, setting)
        check_prompts(rows["prompt"], part)
    with_index(inputs.rows, None)
    if len(inputs.rows) < config.prompts_per_step:
        raise RollwiseError(
            f"prompts_per_step: {config.prompts_per_step}, but data has {len(inputs.rows)} rows; give fewer prompts"
        )
    OutcomeReader(inputs.outcome, config.outcome_threshold, list(map(name_of, inputs.rewards)))
    tokenizer = check_model(config, inputs)
    for part, rows in parts.items():
        if rows is not None:
            check_template(tokenizer, rows["prompt"], part, inputs.model)


def check_columns(
    function: Callable[..., Any], columns: Iterable[str], part: str = "data", setting: str = "rewards"
) -> None:
    """Raise `RollwiseError` where a reward function cannot be called with what TRL gives it: its own arguments and the
    columns of the data, all by name."""
    called = name_of(function)
    held = [name for name in columns if name not in NOT_PASSED_ON]
    if inspect.isclass(function) or hasattr(function, "named_parameters"):
        kind = "a class" if inspect.isclass(function) else "a torch module"
        raise RollwiseError(f"{setting}: {called} is {kind}; give a function, or an object that can be called")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise RollwiseError(
            f"{setting}: {called} does not say which arguments it takes; wrap it in a function"
        ) from None
    for name, parameter in signature.parameters.items():
        by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if by_name and parameter.default is parameter.empty and name not in {*held, *GIVEN_BY_TRL}:
            unlabelled = setting == "rewards" and part == "data" and "answer" not in columns
            way = "; without labels, set method: optpo, or method.labels: majority" if unlabelled else ""
            raise RollwiseError(
                f"{setting}: {called} needs a column {name!r}; {part} has {', '.join(sorted(columns))}{way}"
            )
    try:
        signature.bind(**dict.fromkeys([*GIVEN_BY_TRL, *held]))
    except TypeError as error:
        raise RollwiseError(
            f"{setting}: {called}: {error}; it is called with {', '.join(GIVEN_BY_TRL[:3])} and the columns by name, "
            "so write def reward(completions, **kwargs)"
        ) from None


def check_prompts(prompts: Iterable[Any], part: str) -> None:
    """Raise `RollwiseError` naming the first row whose prompt is neither text nor a conversation."""
    for row, prompt in enumerate(prompts):
        fault = fault_of(prompt)
        if fault:
            raise RollwiseError(
                f"{part}: row {row}: {fault}, got {short(prompt)}; a prompt is text or a list of "
                "{role: user, content: text} messages"
            )


def fault_of(prompt: Any) -> str | None:
    """What is wrong with a prompt, None where nothing is."""
    if isinstance(prompt, str):
        return None if prompt else "the prompt is empty"
    if not isinstance(prompt, list) or not prompt:
        return "the prompt is no text and no list of messages"
    for message in prompt:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return "a message has no role"
        content = message.get("content")
        if not isinstance(content, (str, list)) or not content:
            return f"the message of role {message['role']!r} has no content"
    return None


def check_template(tokenizer: Any, prompts: Iterable[Any], part: str, model: str) -> None:
    """Raise `RollwiseError` where conversations cannot be written out, one try for each order of roles that occurs."""
    tried: set[tuple[str, ...]] = set()
    for row, prompt in enumerate(prompts):
        if isinstance(prompt, str):
            return  # a column is of one type
        roles = tuple(message["role"] for message in prompt)
        if roles in tried:
            continue
        tried.add(roles)
        if not getattr(tokenizer, "chat_template", None):
            raise RollwiseError(
                f"{part}: the prompts are conversations, and the tokenizer of {model} has no chat template; "
                "set chat: false, or take a chat model"
            )
        try:
            tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
        # A template is a program of the model's authors; it may raise anything.
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise RollwiseError(
                f"{part}: row {row}: the chat template of {model} refuses the roles {', '.join(roles)} ({reason})"
            ) from None


@functools.cache
def reading_options(model: str, gguf_file: str | None, trusted: bool) -> dict[str, Any]:
    """Arguments for transformers' `from_pretrained`; asks once whether the hub can be reached."""
    from rollwise.tasks.models import hub_reachable

    options: dict[str, Any] = {"trust_remote_code": True} if trusted else {}
    if gguf_file is not None:
        options["gguf_file"] = gguf_file
    if not (Path(model).is_dir() or hub_reachable()):
        options["local_files_only"] = True
    return options


def check_model(config: RunConfig, inputs: Inputs) -> Any:
    """Read a model's configuration, tokenizer and the headers of its weights, not the weights; returns the tokenizer.

    Raises:
        RollwiseError: if one cannot be read.
    """
    from safetensors import safe_open
    from transformers import AutoConfig, AutoTokenizer

    folder = Path(inputs.model)
    options = reading_options(inputs.model, inputs.gguf_file, bool(config.trainer.get("trust_remote_code")))
    try:
        AutoConfig.from_pretrained(inputs.model, **options)
        tokenizer = AutoTokenizer.from_pretrained(inputs.model, **options)
        for weights in sorted(folder.glob("*.safetensors")) if folder.is_dir() else []:
            with safe_open(str(weights), framework="pt"):
                pass
        return tokenizer
    # Each library below has errors of its own; all mean that this model cannot be had.
    except Exception as error:
        offline = "local_files_only" in options
        reason = "not in the hub's cache, and the hub is offline" if offline else f"{type(error).__name__}: {error}"
        raise RollwiseError(f"model: {inputs.model} cannot be read ({' '.join(reason.split())[:200]})") from error
