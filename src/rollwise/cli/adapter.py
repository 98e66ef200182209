"""The `lora:` part of a configuration: fields of peft's LoraConfig, and the model that is left when training ends."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollwise.cli.values import check_finite, read_as
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

SET_BY_RUN = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "inference_mode": False}
DEFAULTS = {"task_type": "CAUSAL_LM", "target_modules": "all-linear"}


def make_adapter(fields: Mapping[str, Any] | None) -> Any | None:
    """peft's LoraConfig for `lora: {r: 8, alpha: 16, target_modules: all-linear}`; None without one.

    `alpha` and `dropout` are short for peft's `lora_alpha` and `lora_dropout`; without `target_modules` all linear layers
    but the head are adapted.

    Raises:
        RollwiseError: for a field that LoraConfig lacks, or a value that it refuses.
    """
    if fields is None:
        return None
    try:
        from peft import LoraConfig
    except ImportError:
        raise RollwiseError("lora: peft is not installed; pip install 'rollwise[train]'") from None
    hints = typing.get_type_hints(LoraConfig)
    known = {field.name for field in dataclasses.fields(LoraConfig) if field.init}
    given: dict[str, Any] = {}
    for field, value in fields.items():
        name = f"lora_{field}" if field in ("alpha", "dropout") else field
        if name not in known:
            raise RollwiseError(
                f"lora.{field}: peft's LoraConfig has no such field; {nearest(field, [*known, 'alpha', 'dropout'])}"
            )
        if name in SET_BY_RUN:
            raise RollwiseError(f"lora.{field}: is {SET_BY_RUN[name]} in a run; leave it out")
        if name in given:
            raise RollwiseError(f"lora.{field}: set twice, also as {name}; keep one")
        check_finite(value, f"lora.{field}")
        given[name] = read_as(hints[name], value, f"lora.{field}")
    if given.get("r", 8) < 1:
        raise RollwiseError(f"lora.r: {given['r']}; give 1 or more, such as 8")
    if not 0 <= given.get("lora_dropout", 0.0) < 1:
        raise RollwiseError(f"lora.dropout: {given['lora_dropout']}; give a share below 1, such as 0.05")
    try:
        return LoraConfig(**DEFAULTS | given)
    # peft checks fields by errors of several kinds.
    except Exception as error:
        raise RollwiseError(f"lora: {' '.join(str(error).split())[:300]}") from error


def save_trained(trainer: Any, folder: Path) -> None:
    """The final model under `folder/model`; an adapter under `folder/adapter` too, and merged into `folder/model`."""
    model = trainer.model
    if not hasattr(model, "merge_and_unload"):
        trainer.save_model(str(folder / "model"))
        return
    trainer.save_model(str(folder / "adapter"))
    model.merge_and_unload().save_pretrained(folder / "model")
    trainer.processing_class.save_pretrained(folder / "model")
