"""Settings of a lever as a file gives them, read as the types its class declares: a slip shows when the file is read."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from rollwise.allocators import ALLOCATORS, get_allocator
from rollwise.cli.values import check_finite, read_as
from rollwise.levers import Registry
from rollwise.suggest import nearest
from rollwise.types import RollwiseError


def read_lever_settings(
    name: str | None, registry: Registry, given: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The settings of the lever of that name ("1e-3", which YAML reads as text, is a number).

    Levers of one's own, and names that do not exist, are left to what builds them.

    Raises:
        RollwiseError: naming the setting: one that the lever has not, or a value of another type.
    """
    if given is None or name is None or name not in registry:
        return None if given is None else dict(given)
    module, _, attribute = registry[name][0].partition(":")
    build = getattr(import_module(module), attribute)
    known = inspect.signature(build).parameters
    hints = typing.get_type_hints(build.__init__)
    found = {}
    for key, value in given.items():
        if key not in known:
            raise RollwiseError(
                f"{key}: {name} has no such setting; {nearest(key, known) if known else 'it has none'}"
            )
        check_finite(value, key)
        kind = hints.get(key, Any)
        found[key] = value if kind is Any else read_as(kind, value, key)
    return found


def check_allocator(name: str | None, settings: Mapping[str, Any] | None) -> None:
    """Build the rule once with its settings, if it is one of `ALLOCATORS`; raises what it refuses."""
    if settings and name in ALLOCATORS:
        get_allocator(name, **settings)
