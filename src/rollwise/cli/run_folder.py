"""The folder of a run: what is written where, and the run's status in `run.json`.

<run>/config.yaml                     the resolved configuration
<run>/run.json                        status, command, versions, seconds, result of each arm
<run>/<arm>/metrics.jsonl             one line per logged step
<run>/<arm>/rollwise/ledger.jsonl     every rollout paid for
<run>/<arm>/completions/*.parquet     prompts, completions, rewards, advantages
<run>/<arm>/model/                    the final model and tokenizer
<run>/<arm>/log.txt                   what the trainer printed
<run>/report.html
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from rollwise.cli.run_state import never_ended, this_process
from rollwise.cli.values import short
from rollwise.types import RollwiseError

PACKAGES = ("rollwise", "trl", "transformers", "torch", "accelerate", "datasets", "peft", "numpy", "numba")


class RunFolder:
    """A run folder being written; `create` makes it, `mark` moves its status."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._started = time.monotonic()
        self._record: dict[str, Any] = {}

    @classmethod
    def create(cls, output: str | None, name: str, settings: dict[str, Any]) -> RunFolder:
        """Make the folder `output` (None: `runs/<name>-<date>-<time>`) with its configuration and a running status.

        Raises:
            RollwiseError: if `output` already holds files, or cannot be written.
        """
        path = free_path(output, name)
        folder = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            (path / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
        except OSError as error:
            raise RollwiseError(f"output: {path} cannot be written ({error.strerror}); give another folder") from None
        folder._record = {
            "status": "running",
            "command": ["rollwise", *sys.argv[1:]],
            "started": datetime.now().astimezone().isoformat(timespec="seconds"),
            "seconds": 0.0,
            "process": this_process(),
            "versions": installed_versions(),
            "arms": {},
        }
        folder.mark("running")
        return folder

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """Go on writing a run folder whose run ended before its time; arms that are done stay done.

        Raises:
            RollwiseError: a folder of no run, or one that is complete or still being written.
        """
        folder = cls(path)
        try:
            folder._record = json.loads((path / "run.json").read_text(encoding="utf-8"))
            status = str(folder._record["status"])
            folder._record["arms"] = dict(folder._record["arms"])
        except (OSError, ValueError, KeyError, TypeError):
            raise RollwiseError(f"--resume {path}: no run folder; give one that rollwise train wrote") from None
        if status == "complete":
            raise RollwiseError(f"--resume {path}: the run is complete; start another to train longer")
        if status == "running" and not never_ended(path):
            raise RollwiseError(f"--resume {path}: the run is still running; stop it first")
        folder._record.pop("error", None)
        folder._record |= {
            "process": this_process(),
            "resumed": datetime.now().astimezone().isoformat(timespec="seconds"),
        }
        folder.mark("running")
        return folder

    def arm(self, name: str) -> Path:
        """The folder of one arm, created if need be."""
        path = self.path / name
        path.mkdir(exist_ok=True)
        return path

    def finish_arm(self, name: str, result: dict[str, Any]) -> None:
        """Record the result of one arm."""
        self._record["arms"][name] = result
        self.mark("running")

    def mark(self, status: str, error: str | None = None) -> None:
        """Write `run.json` with this status (`running`, `complete`, `failed`, `interrupted`), whole or not at all."""
        self._record |= {"status": status, "seconds": round(time.monotonic() - self._started, 1)}
        if error:
            self._record["error"] = error
        draft = self.path / "run.json.tmp"
        draft.write_text(json.dumps(self._record, indent=2) + "\n", encoding="utf-8")
        os.replace(draft, self.path / "run.json")

    @property
    def record(self) -> dict[str, Any]:
        """What `run.json` holds."""
        return dict(self._record)


def free_path(output: str | None, name: str) -> Path:
    """The path a run may use: `output` if it is empty or absent, else a fresh name under `runs/`.

    Raises:
        RollwiseError: for an `output` that holds something, or is no path at all.
    """
    if output is not None:
        path = Path(output).expanduser()
        try:
            taken = path.exists() and (not path.is_dir() or any(path.iterdir()))
        except (OSError, ValueError) as error:
            raise RollwiseError(
                f"output: {short(output)} cannot be used ({reason_of(error)}); give a folder"
            ) from None
        if taken:
            raise RollwiseError(f"output: {path} already exists and is not an empty folder; give a new one")
        return path
    stem = Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    path, number = stem, 2
    while path.exists():
        path, number = stem.with_name(f"{stem.name}-{number}"), number + 1
    return path


def try_folder(path: Path) -> None:
    """Make the folder and what is missing above it, put one in it, and take all away again.

    Raises:
        RollwiseError: if that cannot be done; permissions and full or read-only disks show only when one tries.
    """
    missing = [part for part in (path, *path.parents) if not part.exists()]
    made: list[Path] = []
    try:
        for part in reversed(missing):
            part.mkdir()
            made.append(part)
        with tempfile.TemporaryDirectory(dir=path):
            pass
    except (OSError, ValueError) as error:
        raise RollwiseError(f"output: {path} cannot be written ({reason_of(error)}); give another folder") from None
    finally:
        for part in reversed(made):
            with contextlib.suppress(OSError):  # another run may have begun to use `runs/`
                part.rmdir()


def reason_of(error: Exception) -> str:
    """What the system says of a path."""
    return getattr(error, "strerror", None) or str(error)


def installed_versions() -> dict[str, str]:
    """Version of Python and of each package that matters to a run; absent ones are left out."""
    found = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
