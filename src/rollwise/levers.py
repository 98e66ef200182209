"""Building an allocator, selector or curator by name, or one of a user's own by its address."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from rollwise.imports import first_line, load_function
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

Registry = Mapping[str, tuple[str, dict[str, Any]]]
"""Name -> `package.module:Class`, and the settings the name stands for."""


def build_lever(
    kind: str, name: str, registry: Registry, contract: type, settings: Mapping[str, Any], facts: Mapping[str, Any]
) -> Any:
    """The lever of that name, or the class at `package.module:Class`.

    `settings` are what the user asked for and must fit; `facts` are what the run knows (its seed, its length) and go to
    levers that take them, unless a setting says otherwise.

    Raises:
        RollwiseError: naming `kind`: an unknown name or setting, a wrong type, or a class that is no such lever.
    """
    preset: dict[str, Any] = {}
    if ":" in name:
        build = load_function(name, kind)
    elif name in registry:
        path, preset = registry[name]
        module, _, attribute = path.partition(":")
        build = getattr(import_module(module), attribute)
    else:
        raise RollwiseError(f"{kind}: no {name!r}; {nearest(name, registry)}, or package.module:Class")
    parameters = inspect.signature(build).parameters.values()
    names = [entry.name for entry in parameters if entry.kind in (entry.POSITIONAL_OR_KEYWORD, entry.KEYWORD_ONLY)]
    open_ended = any(entry.kind is entry.VAR_KEYWORD for entry in parameters)
    for key in settings:
        if key not in names and not open_ended:
            raise RollwiseError(
                f"{kind}: {name} has no setting {key!r}; {nearest(key, names) if names else 'it has none'}"
            )
    known = {key: value for key, value in facts.items() if key in names}
    try:
        lever = build(**(known | preset | dict(settings)))
    except TypeError as error:
        raise RollwiseError(f"{kind}: {name} does not take its settings ({error})") from None
    except Exception as error:
        if isinstance(error, RollwiseError) or ":" not in name:
            raise
        raise RollwiseError(f"{kind}: {name} raised {type(error).__name__}: {first_line(error)}") from error
    if not isinstance(lever, contract):
        raise RollwiseError(f"{kind}: {name} gives no {kind}; rollwise.testing.check_{kind} says what is missing")
    return lever
