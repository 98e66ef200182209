"""Whether a checkpoint is whole: which files belong to it and what was in them, written when all of them are.

`rollwise_manifest.json` names every file with its length and a digest, so that files that are missing, damaged, cut short
or of another step show before anything is trained. `trainer_state.json` is the last file of all and speaks for itself: it
is JSON and says of which step it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

MANIFEST = "rollwise_manifest.json"
STATE = "trainer_state.json"
FORMAT = 1
PIECE, PIECES = 1 << 20, 64
"""Of a file longer than `PIECE` x `PIECES` bytes so many pieces count, evenly spread: reading back all of a large
optimizer would take longer than the steps between two checkpoints."""


def write_manifest(folder: Path, step: int) -> None:
    """Write down what the checkpoint of `step` in `folder` holds; complete or not there at all."""
    files = {name: {"bytes": path.stat().st_size, "digest": digest(path)} for name, path in content(folder)}
    scratch = folder / f"{MANIFEST}.tmp"
    scratch.write_text(json.dumps({"format": FORMAT, "step": step, "files": files}, indent=1), encoding="utf-8")
    os.replace(scratch, folder / MANIFEST)


def content(folder: Path) -> Iterator[tuple[str, Path]]:
    """Name and path of each file that a manifest speaks of."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != STATE and not path.name.startswith(MANIFEST):
            yield path.relative_to(folder).as_posix(), path


def digest(path: Path) -> str:
    """SHA-256 of a file, of `PIECES` evenly spread pieces of it where it is long."""
    size, found = path.stat().st_size, sha256()
    with path.open("rb") as file:
        for k in range(PIECES):
            file.seek(k * PIECE if size <= PIECE * PIECES else k * (size - PIECE) // (PIECES - 1))
            found.update(file.read(PIECE))
    return found.hexdigest()


def fault_of(folder: Path, stock: bool = False) -> str | None:
    """Why the checkpoint in `folder` cannot be gone on with, None where it is whole.

    `stock` accepts one that TRL's own trainer saved, of which only `trainer_state.json` is looked at.
    """
    try:
        step = step_of(folder)
        return None if stock and is_stock(folder) else fault_of_files(folder, step)
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except OSError as error:
        return f"{Path(error.filename or folder).name} cannot be read ({error.strerror or error})"
    except ValueError as error:
        return str(error)


def fault_of_files(folder: Path, step: int) -> str | None:
    """What does not agree with the manifest, which must be of `step`."""
    manifest = read_json(folder / MANIFEST)
    files, saved_at = manifest.get("files"), manifest.get("step")
    if manifest.get("format") != FORMAT or not isinstance(files, dict):
        return f"{MANIFEST} is damaged"
    if saved_at != step:
        return f"{STATE} is of step {step}, its other files of step {saved_at}"
    for name, saved in files.items():
        size = (folder / name).stat().st_size
        if not isinstance(saved, dict) or not isinstance(saved.get("bytes"), int):
            return f"{MANIFEST} is damaged"
        if size != saved["bytes"]:
            return f"{name} has {size:,} bytes of {saved['bytes']:,}"
        if digest(folder / name) != saved.get("digest"):
            return f"{name} is not the file that was saved"
    return None


def is_stock(folder: Path) -> bool:
    """Whether nothing of rollwise is in a checkpoint."""
    return not any(folder.glob("rollwise_*"))


def step_of(folder: Path) -> int:
    """The step of the checkpoint in a folder.

    Raises:
        OSError: there is none, or it cannot be read.
        ValueError: it does not say; the message is why.
    """
    step = read_json(folder / STATE).get("global_step")
    if type(step) is not int or step < 1:
        raise ValueError(f"{STATE} is damaged")
    return step


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds none; the message names it.
    """
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} is damaged")
    return found


def checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints in a folder with the step in their name, the last first."""
    named = [(re.fullmatch(r"checkpoint-(\d+)", path.name), path) for path in folder.glob("checkpoint-*")]
    return sorted(((int(name[1]), path) for name, path in named if name and path.is_dir()), reverse=True)


def last_whole(folder: Path, stock: bool = False) -> tuple[Path | None, list[str]]:
    """The last whole checkpoint in a folder, None where there is none, and a line for each that was passed over."""
    lines: list[str] = []
    for step, path in checkpoints(folder):
        fault = fault_of(path, stock) or (f"it is of step {step_of(path)}" if step_of(path) != step else None)
        if fault is None:
            return path, lines
        lines.append(f"{path.name} is passed over: {fault}")
    return None, lines
