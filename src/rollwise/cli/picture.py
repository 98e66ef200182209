"""A picture's file: checked before the work that it shows is done, and written in one place."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from rollwise.types import RollwiseError


def check_picture(path: str | Path, setting: str = "picture") -> Path:
    """The path of a picture that can be written; its folder is made. The kind of picture is what it ends in.

    Raises:
        RollwiseError: matplotlib is missing, or the path is a folder, ends in no kind of picture, or cannot be written.
    """
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise RollwiseError(f"{setting}: {error.name} is not installed; pip install 'rollwise[report]'") from None
    target = Path(path)
    if target.is_dir():
        raise RollwiseError(f"{setting}: {target} is a folder; give a file, such as {target / setting}.png")
    if target.suffix.lower().removeprefix(".") not in FigureCanvasBase.get_supported_filetypes():
        raise RollwiseError(f"{setting}: {target} ends in no kind of picture; give {target.with_suffix('.png')}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("ab") if target.exists() else tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise unwritable(target, error, setting) from None
    return target


def save_picture(figure: Any, path: str | Path, setting: str = "picture", dpi: int = 150) -> Path:
    """Write a matplotlib figure; returns its path.

    Raises:
        RollwiseError: as `check_picture`, or the disk is full.
    """
    target = check_picture(path, setting)
    try:
        figure.savefig(target, dpi=dpi)
    except OSError as error:
        raise unwritable(target, error, setting) from None
    return target


def unwritable(path: Path, error: OSError, setting: str) -> RollwiseError:
    """The error that says why a path cannot be written."""
    return RollwiseError(f"{setting}: {path} cannot be written ({error.strerror or error}); give another path")
