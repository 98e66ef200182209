"""Allocation rules: how many rollouts each prompt of a step gets."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rollwise.allocators.base import Allocator
from rollwise.allocators.uniform import Observe, Uniform
from rollwise.imports import load_function
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

ALLOCATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "uniform": ("uniform:Uniform", {}),
    "observe": ("uniform:Observe", {}),
    "adaroll": ("adaroll:AdaRoll", {}),
    "neyman": ("neyman:Neyman", {}),
    "hora": ("hora:Hora", {}),
    "aero": ("aero:Aero", {}),
    "ar3po": ("ar3po:Ar3po", {}),
    "reinforce_ada": ("reinforce_ada:ReinforceAda", {}),
    "vip": ("vip:Vip", {}),
    "knapsack": ("knapsack:Knapsack", {}),
    "gvm": ("gvm:Gvm", {}),
    "gvm_equal": ("gvm:Gvm", {"equal": True}),
    "dars": ("dars:Dars", {}),
    "optpo": ("optpo:OptPo", {}),
}
"""Rules by name: module and class inside this package, and the settings the name stands for."""

ADAROLL_ONLY = ("utility", "advantage_form", "sequential", "block_prompts", "token_budget")
"""Settings every trainer passes along; rules that do not know them ignore them."""


def get_allocator(name: str, **settings: Any) -> Allocator:
    """The rule of that name, or a rule of one's own by its address `package.module:Class`.

    `settings` are keyword arguments of the rule. Those of `AdaRoll` are ignored by rules that do not take them, so that one
    set of settings does for all.

    Raises:
        RollwiseError: for an unknown name or setting, or a class that is no rule.
    """
    if ":" in name:
        build, preset = load_function(name, "allocator"), dict[str, Any]()
    elif name in ALLOCATORS:
        path, preset = ALLOCATORS[name]
        module, _, attribute = path.partition(":")
        build = getattr(import_module(f"{__name__}.{module}"), attribute)
    else:
        raise RollwiseError(f"allocator: no rule {name!r}; {nearest(name, ALLOCATORS)}, or package.module:Class")
    rule = build(**(accepted(name, build, settings) | preset))
    if not isinstance(rule, Allocator):
        raise RollwiseError(
            f"allocator: {name} gives no rule; a rule has name, saves, next_wave and metrics "
            "(rollwise.testing.check_allocator says what is missing)"
        )
    return rule


def accepted(name: str, build: Callable[..., Any], settings: dict[str, Any]) -> dict[str, Any]:
    """`settings` without those of `ADAROLL_ONLY` that `build` does not take.

    Raises:
        RollwiseError: naming a setting it does not take either way.
    """
    parameters = inspect.signature(build).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return settings
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL]
    for key in settings:
        if key not in names and key not in ADAROLL_ONLY:
            hint = nearest(key, names) if names else "it has none"
            raise RollwiseError(f"allocator: {name} has no setting {key!r}; {hint}")
    return {key: value for key, value in settings.items() if key in names}


__all__ = ["ALLOCATORS", "Allocator", "Observe", "Uniform", "get_allocator"]
