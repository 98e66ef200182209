"""Append-only record of every rollout paid for.

One JSON object a line (`ledger_lines`): `wave` lines are written before anything is generated (they are what was paid),
`rollout` lines as outcomes come back, a `step` line when the step closes, `rewind` lines when a run resumes from before
its ledger's end.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict
from weakref import WeakValueDictionary

from rollwise.file_lock import claim
from rollwise.ledger_lines import is_cut_short, read_line, read_rollout, rollout_line, wave_line
from rollwise.types import Rollout, RollwiseError, StepRecord

_open: WeakValueDictionary[tuple[int, int], Ledger] = WeakValueDictionary()
"""The ledgers of this process by device and inode; of two on one file the later writes, as in a notebook's second try."""


class Mark(TypedDict):
    """How far a ledger was at a moment, for a checkpoint: its length in bytes, their SHA-256, and rollouts not lost."""

    bytes: int
    digest: str
    rollouts: int


class Ledger:
    """The ledger of one run, in one file; opening an existing file continues it.

    A line cut short by a kill is dropped (it was never acknowledged); any other unreadable line is an error. One process
    writes at a time. Held in memory: the rollouts of the last step in the file, and one count per step.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open or create the ledger at `path`.

        Raises:
            RollwiseError: the file holds a line that is no ledger line, another process has it open, or it cannot be
                read and written.
        """
        self.path = Path(path)
        self.paid = 0
        """Rollouts paid for in all, lost and repeated ones included."""
        self.last_step = -1
        """Index of the last step the ledger knows, -1 for none."""
        self._waves: dict[int, dict[str, Any]] = {}
        self._known_at: dict[int, int] = {}
        self._rollouts: dict[str, Rollout] = {}
        self._paid_by_step: dict[int, int] = {}
        self._digest = sha256()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # unbuffered: a write that fails half-way leaves nothing behind that a later one would repeat
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._file = io.FileIO(os.open(self.path, flags, 0o666), "r+")
            self._claim()
            self._size = self._read()
        except OSError as error:
            raise self._fault("be opened", error) from error

    def wave(self, step: int, wave: int, rollouts: Iterable[Rollout], digest: str) -> None:
        """Record that a wave of `rollouts` was issued on the decision with that digest; a known wave is left alone.

        Raises:
            RollwiseError: the ledger holds another decision at this place, or a later step.
        """
        line = wave_line(step, wave, rollouts, digest)
        if step < self.last_step:
            raise RollwiseError(
                f"ledger: {self.path} is at step {self.last_step} already, past step {step}; resume there with the same "
                f"settings, say rewind({step}) first, or start a new ledger"
            )
        if not self.holds(step, wave):
            self._write([line])
        elif self._waves[wave] != line:
            raise RollwiseError(
                f"ledger: {self.path} holds another wave {wave} of step {step} than was decided now; resume with the same "
                "settings, prompts and seed, or start a new ledger"
            )

    def observe(self, step: int, rollouts: Iterable[Rollout]) -> None:
        """Record what came back for rollouts of `step`; those already recorded are left alone."""
        self._write([rollout_line(step, rollout) for rollout in rollouts if rollout.id not in self._rollouts])

    def close_step(self, record: StepRecord) -> None:
        """Record that a step is complete, with its metrics."""
        line = {"type": "step", "step": record.step, "rollouts": int(record.counts.sum()), "metrics": record.metrics}
        self._write([line])

    def holds(self, step: int, wave: int) -> bool:
        """Whether that wave was recorded; False unless `step` is the last step."""
        return step == self.last_step and wave in self._waves

    def known(self, step: int) -> dict[str, Rollout]:
        """Rollouts of `step` already paid for and observed, by id, in order; empty unless `step` is the last step."""
        return dict(self._rollouts) if step == self.last_step else {}

    def known_at(self, step: int, wave: int) -> int:
        """How many of `known(step)` had come back when that wave was decided; all where it was not yet."""
        return self._known_at[wave] if self.holds(step, wave) else len(self.known(step))

    def rewind(self, step: int) -> int:
        """Say that the run resumes at `step`: what the file holds from there on was paid for and lost.

        Returns the number of rollouts lost, 0 when the ledger ends before `step`.
        """
        lost = sum(count for at, count in self._paid_by_step.items() if at >= step)
        if lost:
            self._write([{"type": "rewind", "step": step, "rollouts_lost": lost}])
        return lost

    def mark(self) -> Mark:
        """How far the ledger is; what it holds until here is on the disk when this returns."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._fault("be written", error) from error
        return {"bytes": self._size, "digest": self._digest.hexdigest(), "rollouts": self._kept}

    @classmethod
    def reopen(cls, path: str | os.PathLike[str], mark: Mark, saved: str = "the checkpoint") -> Ledger:
        """The ledger at `path`, which must begin with all that it held when `mark` was taken, for what was `saved` then.

        Raises:
            RollwiseError: it is missing, shortened, or of another run, beside what opening raises.
        """
        held, found = 0, None
        if os.path.exists(path):
            ledger = cls(path)
            held = ledger._kept
            with open(ledger.path, "rb") as file:
                found = sha256(file.read(mark["bytes"])).hexdigest()
            if ledger._size >= mark["bytes"] and found == mark["digest"]:
                return ledger
            ledger.close()
        others = "" if held < mark["rollouts"] else ", and not the same"
        raise RollwiseError(
            f"ledger: {path} holds {held} rollouts, {mark['rollouts']} were paid for when {saved} was saved{others}; "
            f"put back that run's ledger, or delete {saved} to go on from an earlier one"
        )

    @property
    def lost(self) -> int:
        """Rollouts paid for whose training a kill lost, so that they were made again."""
        return self.paid - self._kept

    @property
    def _kept(self) -> int:
        """Rollouts paid for whose training is not lost."""
        return sum(self._paid_by_step.values())

    def close(self) -> None:
        """Close the file, which other processes may open then."""
        self._file.close()

    def _claim(self) -> None:
        place = os.fstat(self._file.fileno())
        earlier = _open.pop((place.st_dev, place.st_ino), None)
        if earlier is not None:
            earlier.close()
        if claim(self._file) is False:
            self._file.close()
            raise RollwiseError(
                f"ledger: {self.path} is open in another process; let that run end, or give another folder"
            )
        _open[place.st_dev, place.st_ino] = self

    def _write(self, lines: list[dict[str, Any]]) -> None:
        if self._file.closed:
            raise RollwiseError(
                f"ledger: {self.path} is closed, by close() or by opening it a second time; open it again to write"
            )
        text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode()
        rest, size = memoryview(text), self._size + len(text)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._file.truncate(self._size)
            raise self._fault("be written", error) from error
        self._size = size
        self._digest.update(text)
        for line in lines:
            self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        step = line["step"]
        if line["type"] == "rewind":
            self._paid_by_step = {at: count for at, count in self._paid_by_step.items() if at < step}
            self._start(step - 1)
        elif step != self.last_step:
            self._start(step)
        if line["type"] == "wave":
            self._waves[line["wave"]] = line
            self._known_at[line["wave"]] = len(self._rollouts)
            self.paid += len(line["rollouts"])
            self._paid_by_step[step] = self._paid_by_step.get(step, 0) + len(line["rollouts"])
        elif line["type"] == "rollout":
            self._rollouts[line["id"]] = read_rollout(line)

    def _start(self, step: int) -> None:
        self.last_step, self._waves, self._known_at, self._rollouts = step, {}, {}, {}

    def _read(self) -> int:
        """Take in the file's lines and cut off a last one without its end; returns the bytes kept."""
        keep = 0
        with open(self._file.fileno(), "rb", closefd=False) as file:
            for number, raw in enumerate(file, start=1):
                if not raw.endswith(b"\n") and is_cut_short(raw):
                    break
                try:
                    self._take(read_line(raw))
                except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
                    self._file.close()
                    raise RollwiseError(
                        f"ledger: {self.path} line {number} is not a ledger line ({error}); give another folder"
                    ) from None
                self._digest.update(raw)
                keep += len(raw)
        self._file.truncate(keep)
        return keep

    def _fault(self, verb: str, error: OSError) -> RollwiseError:
        return RollwiseError(
            f"ledger: {self.path} cannot {verb} ({error.strerror or error}); give a folder with room and write access"
        )
