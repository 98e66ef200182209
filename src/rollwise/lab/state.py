"""Files that are written whole or not at all: text, and states of tensors, arrays and plain data."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch


def write_text(path: Path, text: str) -> None:
    """Write a text file, also where two processes write the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, path)


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write a state; arrays are kept as tensors, which torch saves and reads without running code."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "wb") as file:
        torch.save(_pack(state), file)
    os.replace(draft, path)


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
