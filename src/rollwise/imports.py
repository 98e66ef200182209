"""A user's own function by its address, `package.module:name`."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rollwise.suggest import nearest
from rollwise.types import RollwiseError


def load_function(path: str, setting: str) -> Callable[..., Any]:
    """The callable at `package.module:name`; modules are looked for in the working directory too.

    An object with `__call__` but without a name of its own goes by `name`. What the module prints while it is imported
    goes to standard error, where it cannot get into a command's JSON.

    Raises:
        RollwiseError: in one line that names `setting`, where there is no such function.
    """
    module_name, _, attribute = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    module = load_module(module_name, path, setting)
    try:
        function = getattr(module, attribute, None)
    # A module may have a `__getattr__` of its own.
    except Exception as error:
        raise RollwiseError(f"{setting}: {path!r}: {type(error).__name__}: {first_line(error)}") from error
    if not callable(function):
        functions = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", "") == module_name
        ]
        hint = nearest(attribute, functions) if functions else "it has no functions"
        raise RollwiseError(f"{setting}: {module_name!r} has no function {attribute!r}; {hint}")
    if isinstance(getattr(function, "__name__", None), str) or hasattr(function, "named_parameters"):
        return function  # a torch module is no function, whatever it is called
    return named(function, attribute)


def load_module(name: str, path: str, setting: str) -> ModuleType:
    """Import the module of the address `path`, its faults as `RollwiseError`s of one line."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise RollwiseError(
                f"{setting}: {path!r}: no module {error.name!r} in the working directory {os.getcwd()} or among the "
                "installed packages; give 'module:function'"
            ) from None
        raise RollwiseError(
            f"{setting}: {path!r}: the module imports {error.name!r}, which is not installed"
        ) from error
    except SystemExit as error:
        raise RollwiseError(
            f"{setting}: {path!r}: the module ends the program while it is imported (sys.exit); put what it runs "
            "under if __name__ == '__main__'"
        ) from error
    # Whatever the user's module raises while it is imported is theirs to mend.
    except Exception as error:
        raise RollwiseError(
            f"{setting}: {path!r}: {type(error).__name__}: {first_line(error)}; give 'module:function'"
        ) from error


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same callable as a function with a name, asynchronous where its `__call__` is; its signature is kept."""
    call = getattr(function, "func", None) or getattr(type(function), "__call__", function)  # noqa: B004

    def run(*arguments: Any, **more: Any) -> Any:
        return function(*arguments, **more)

    async def wait(*arguments: Any, **more: Any) -> Any:
        return await function(*arguments, **more)

    found = functools.update_wrapper(wait if inspect.iscoroutinefunction(call) else run, function, updated=())
    found.__name__ = found.__qualname__ = name
    return found


def first_line(error: BaseException) -> str:
    """The first line of an error's text, empty where it has none."""
    return (str(error).strip().splitlines() or [""])[0]
