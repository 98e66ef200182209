"""The folder of a run: what is written where, and the run's status in `run.json`.

<run>/config.yaml                     the resolved configuration
<run>/run.json                        status, command, versions, seconds, result of each arm
<run>/run.lock                        locked as long as the process that writes the folder lives
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
from types import TracebackType
from typing import Any, BinaryIO

import yaml

from rollwise.cli.run_state import seen_alive, this_process, where
from rollwise.cli.values import short
from rollwise.file_lock import claim
from rollwise.types import RollwiseError

PACKAGES = ("rollwise", "trl", "transformers", "torch", "accelerate", "datasets", "peft", "numpy", "numba")


class RunFolder:
    """A run folder being written, by this process alone until it is closed; `create` makes it, `mark` moves its status."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        """What is to be said of a run that is resumed."""
        self._started = time.monotonic()
        self._record: dict[str, Any] = {}
        self._lock: BinaryIO | None = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder, which another process may write then."""
        if self._lock is not None:
            self._lock.close()

    def _claim(self) -> bool | None:
        """Take the folder; False where another process has it, None where that cannot be told."""
        try:
            self._lock = open(self.path / "run.lock", "ab")  # noqa: SIM115
        except OSError as error:
            raise RollwiseError(f"output: {self.path} cannot be written ({error.strerror})") from None
        return claim(self._lock)

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
        folder._claim()
        folder.mark("running")
        return folder

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """A run folder whose run ended before its time, to go on writing; arms that are done stay done.

        A run of another machine, whose process cannot be seen, counts as ended where its lock is free.

        Raises:
            RollwiseError: a folder of no run, or one that is complete, damaged or still being written.
        """
        folder = cls(path)
        folder._record = read_record(path)
        status, place = folder._record["status"], where(folder._record)
        if status == "complete":
            raise RollwiseError(f"--resume {path}: the run is complete; start another to train longer")
        alive = seen_alive(folder._record) if status == "running" else False
        free = folder._claim()
        if free and alive is None:
            folder.notes.append(
                f"note         it called itself running ({place}), but its folder is not held any more"
            )
        elif free is False or alive is not False:
            folder.close()
            if free is False or alive:
                raise RollwiseError(f"--resume {path}: the run is still running ({place}); stop it first")
            raise RollwiseError(
                f"--resume {path}: whether the run still runs cannot be seen from here ({place}); if it does not, "
                f'write "status": "interrupted" into {path / "run.json"}'
            )
        return folder

    def resume(self) -> None:
        """Write that the run goes on, in this process."""
        self._record.pop("error", None)
        self._record |= {
            "process": this_process(),
            "resumed": datetime.now().astimezone().isoformat(timespec="seconds"),
        }
        self.mark("running")

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


def read_record(path: Path) -> dict[str, Any]:
    """What `run.json` of a run that is to be resumed holds.

    Raises:
        RollwiseError: there is none, or it is damaged.
    """
    try:
        record = json.loads((path / "run.json").read_text(encoding="utf-8"))
        status = str(record["status"])
        wrong = [name for name, result in record["arms"].items() if not fits(result)]
    except OSError:
        raise RollwiseError(f"--resume {path}: no run folder; give one that rollwise train wrote") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RollwiseError(
            f'--resume {path}: run.json is damaged; write {{"status": "interrupted", "arms": {{}}}} into it '
            "to go on with every arm"
        ) from None
    if wrong:
        raise RollwiseError(
            f"--resume {path}: run.json is damaged (arms.{wrong[0]}); take {wrong[0]} out of arms to go on with it"
        )
    return {**record, "status": status}


def fits(result: Any) -> bool:
    """Whether this can be the result of an arm."""
    return (
        isinstance(result, dict)
        and all(type(result.get(name)) in (int, float) for name in ("rollouts_spent", "seconds"))
        and all(isinstance(result.get(name, {}), dict) for name in ("before", "after"))
    )


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
