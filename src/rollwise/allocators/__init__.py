"""Allocation rules: how many rollouts each prompt of a step gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollwise.allocators.base import Allocator
from rollwise.allocators.uniform import Observe, Uniform
from rollwise.levers import build_lever

ALLOCATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "uniform": ("rollwise.allocators.uniform:Uniform", {}),
    "observe": ("rollwise.allocators.uniform:Observe", {}),
    "adaroll": ("rollwise.allocators.adaroll:AdaRoll", {}),
    "neyman": ("rollwise.allocators.neyman:Neyman", {}),
    "hora": ("rollwise.allocators.hora:Hora", {}),
    "aero": ("rollwise.allocators.aero:Aero", {}),
    "ar3po": ("rollwise.allocators.ar3po:Ar3po", {}),
    "reinforce_ada": ("rollwise.allocators.reinforce_ada:ReinforceAda", {}),
    "vip": ("rollwise.allocators.vip:Vip", {}),
    "knapsack": ("rollwise.allocators.knapsack:Knapsack", {}),
    "gvm": ("rollwise.allocators.gvm:Gvm", {}),
    "gvm_equal": ("rollwise.allocators.gvm:Gvm", {"equal": True}),
    "dars": ("rollwise.allocators.dars:Dars", {}),
    "optpo": ("rollwise.allocators.optpo:OptPo", {}),
}
"""Rules by name: their class, and the settings the name stands for."""

ADAROLL_ONLY = ("utility", "advantage_form", "sequential", "block_prompts", "token_budget")
"""Settings every trainer passes along; rules that do not take them ignore them."""


def get_allocator(name: str, given: Mapping[str, Any] | None = None, /, **settings: Any) -> Allocator:
    """The rule of that name, or a rule of one's own by its address `package.module:Class`.

    `settings` are keyword arguments of the rule. Those of `AdaRoll` are ignored by rules that do not take them, so that one
    set of settings does for all. `given` holds further settings, which go before the keywords.

    Raises:
        RollwiseError: for an unknown name or setting, or a class that is no rule.
    """
    settings |= given or {}
    shared = {key: value for key, value in settings.items() if key in ADAROLL_ONLY}
    own = {key: value for key, value in settings.items() if key not in ADAROLL_ONLY}
    rule: Allocator = build_lever("allocator", name, ALLOCATORS, Allocator, own, shared)
    return rule


__all__ = ["ALLOCATORS", "Allocator", "Observe", "Uniform", "get_allocator"]
