"""Files that are written whole or not at all: text, and states of tensors, arrays and plain data."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from rollwise.types import RollwiseError

T = TypeVar("T")


def write_text(path: Path, text: str, setting: str = "out") -> None:
    """Write a text file, also where two processes write the same one; `setting` is named where that fails."""
    _replace(path, text.encode(), setting)


def write_state(path: Path, state: dict[str, Any], setting: str = "out") -> None:
    """Write a state; arrays are kept as tensors, which torch saves and reads without running code."""
    buffer = io.BytesIO()
    torch.save(_pack(state), buffer)
    _replace(path, buffer.getvalue(), setting)


def check_writable(folder: Path, setting: str = "out") -> None:
    """Make the folder where it is missing.

    Raises:
        RollwiseError: where no file can be written in it, before anything is computed that would be.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise RollwiseError(f"{setting}: {folder} cannot be written ({error.strerror}); give another folder") from None


def take_up(path: Path, use: Callable[[Path], T], setting: str = "out") -> T | None:
    """What `use` makes of a saved file; None where there is none.

    One that is damaged counts as none, since it can be made again: it is set aside, as a line on standard error says.

    Raises:
        RollwiseError: a file that cannot be opened at all.
    """
    if not path.exists():
        return None
    try:
        path.open("rb").close()
    except OSError as error:
        raise RollwiseError(
            f"{setting}: {path} cannot be read ({error.strerror}); remove it, and it is made again"
        ) from None
    try:
        return use(path)
    except MemoryError:
        raise
    # torch, pickle and zip have errors of their own, and what was read may hold anything
    except Exception as error:
        aside = path.with_name(path.name + ".damaged")
        os.replace(path, aside)
        reason = type(error).__name__
        print(f"rollwise: {path} is damaged ({reason}); kept as {aside.name}, and made again", file=sys.stderr)
        return None


def read_state(path: Path) -> dict[str, Any]:
    """What `write_state` wrote, arrays as arrays."""
    return _unpack(torch.load(path, weights_only=True))


def _pack(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pack(entry) for key, entry in value.items()}
    return ("array", torch.as_tensor(value.copy())) if isinstance(value, np.ndarray) else value


def _unpack(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unpack(entry) for key, entry in value.items()}
    return value[1].numpy() if isinstance(value, tuple) and value[:1] == ("array",) else value


def _replace(path: Path, content: bytes, setting: str) -> None:
    check_writable(path.parent, setting)
    draft = None
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(draft, path)
    except OSError as error:
        raise RollwiseError(f"{setting}: {path} cannot be written ({error.strerror}); give another folder") from None
    finally:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)
