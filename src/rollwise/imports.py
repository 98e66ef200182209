"""A user's own function by its address, `package.module:name`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from rollwise.suggest import nearest
from rollwise.types import RollwiseError


def load_function(path: str, setting: str) -> Callable[..., Any]:
    """The callable at `package.module:name`; modules are looked for in the working directory too.

    Raises:
        RollwiseError: in one line that names `setting`, where there is no such function.
    """
    module_name, _, attribute = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise RollwiseError(
                f"{setting}: {path!r}: no module {error.name!r} in the working directory {os.getcwd()} or among the "
                "installed packages; give 'module:function'"
            ) from None
        raise RollwiseError(
            f"{setting}: {path!r}: the module imports {error.name!r}, which is not installed"
        ) from error
    # Whatever the user's module raises while it is imported is theirs to mend.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise RollwiseError(
            f"{setting}: {path!r}: {type(error).__name__}: {reason}; give 'module:function'"
        ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        functions = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", "") == module_name
        ]
        hint = nearest(attribute, functions) if functions else "it has no functions"
        raise RollwiseError(f"{setting}: {module_name!r} has no function {attribute!r}; {hint}")
    return function
