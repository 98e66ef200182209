"""Allocation rules: how many rollouts each prompt of a step gets."""

from __future__ import annotations

from typing import Any

from rollwise.allocators.base import Allocator
from rollwise.allocators.uniform import Observe, Uniform
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

ALLOCATORS = ("uniform", "observe", "adaroll", "neyman")


def get_allocator(name: str, **settings: Any) -> Allocator:
    """The rule of that name; `settings` are the keyword arguments of `AdaRoll`, which the other rules ignore.

    Raises:
        RollwiseError: for an unknown name or setting.
    """
    if name == "uniform":
        return Uniform()
    if name == "observe":
        return Observe()
    if name == "adaroll":
        from rollwise.allocators.adaroll import AdaRoll

        return AdaRoll(**settings)
    if name == "neyman":
        from rollwise.allocators.neyman import Neyman

        return Neyman()
    raise RollwiseError(f"allocator: no rule {name!r}; {nearest(name, ALLOCATORS)}")


__all__ = ["ALLOCATORS", "Allocator", "Observe", "Uniform", "get_allocator"]
