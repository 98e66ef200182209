"""Published methods as the lab runs them: their names in an arm's line, and the settings these stand for."""

from __future__ import annotations

from typing import Any

from rollwise.allocators import ALLOCATORS
from rollwise.lab.losses import ESTIMATORS, LOSSES
from rollwise.presets import PRESETS, Method


def unfold(method: Method) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A published method's allocator, its settings, and what else of an arm it sets.

    The lab is one process, so `bnpo` is the mean over tokens that `dapo` is; clip ranges are those of the lab's losses,
    which one update a step never meets.
    """
    loss = lab_loss(method)
    own: dict[str, Any] = {"loss": loss}
    if method.advantage != ESTIMATORS[loss]:
        own["advantage"] = method.advantage
    own |= method.step
    if method.selector:
        own["selector"] = method.selector
    if method.curators:
        own["curator"] = "/".join(method.curators)
    inner = {name: settings for curator in method.curator_settings.values() for name, settings in curator.items()}
    levers = {"selector": dict(method.selector_settings), "curator": inner}
    own["lever_settings"] = {lever: settings for lever, settings in levers.items() if settings}
    return method.allocator, dict(method.allocator_settings), own


def lab_loss(method: Method) -> str:
    """The lab's loss of a published method."""
    loss = method.trainer.get("loss_type", "grpo")
    if method.trainer.get("importance_sampling_level") == "trajectory":
        loss = "tic_grpo"
    loss = "dapo" if loss == "bnpo" else loss
    return loss if loss in LOSSES else "grpo"


def preset_of(head: str) -> Method | None:
    """The published method that the first part of an arm's line names, if it is one and not an allocator."""
    name = head.removeprefix("preset.")
    return PRESETS[name] if name in PRESETS and (name != head or name not in ALLOCATORS) else None


def published_arms() -> tuple[str, ...]:
    """Every published method's line, with the prefix where an allocator has the same name."""
    return tuple(f"preset.{name}" if name in ALLOCATORS else name for name in PRESETS)


def loss_of(line: str) -> str:
    """Name of the loss that an arm's line asks for; the default of the lab where it says nothing, also if it is no arm."""
    head, *extras = line.split("@")
    for extra in extras:
        if extra.startswith("loss="):
            return extra.removeprefix("loss=")
    method = preset_of(head)
    return "grpo" if method is None else lab_loss(method)
