"""Append-only record of every rollout paid for.

One JSON object a line: `wave` lines are written before anything is generated (they are what was paid), `rollout` lines as
outcomes come back, a `step` line when the step closes, `rewind` lines when a run resumes from before its ledger's end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from rollwise.types import Outcome, Rollout, RollwiseError, StepRecord


class Ledger:
    """The ledger of one run, in one file; opening an existing file continues it.

    A line cut short by a kill is dropped (it was never acknowledged); any other unreadable line is an error.
    Held in memory: the rollouts of the last step in the file, and one count per step.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open or create the ledger at `path`.

        Raises:
            RollwiseError: if the file holds a line that is no ledger line.
        """
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.paid = 0
        """Rollouts paid for in all, lost and repeated ones included."""
        self.last_step = -1
        """Index of the last step the ledger knows, -1 for none."""
        self._waves: dict[int, list[str]] = {}
        self._rollouts: dict[str, Rollout] = {}
        self._closed = True
        self._paid_by_step: dict[int, int] = {}
        if self.path.exists():
            self._read()
        self._file: TextIO = self.path.open("a", encoding="utf-8")

    def wave(self, step: int, wave: int, rollouts: Iterable[Rollout], digest: str) -> None:
        """Record that a wave of `rollouts` was issued on the decision with that digest; a known wave is left alone."""
        issued = list(rollouts)
        if step == self.last_step and self._waves.get(wave) == [rollout.id for rollout in issued]:
            return
        line = {
            "type": "wave",
            "step": step,
            "wave": wave,
            "digest": digest,
            "rollouts": [
                {"id": r.id, "prompt_id": r.prompt_id, "group_id": r.group_id, "belief": list(r.belief)}
                for r in issued
            ],
        }
        self._write([line])
        self._take(line)

    def observe(self, step: int, rollouts: Iterable[Rollout]) -> None:
        """Record what came back for rollouts of `step`; those already recorded are left alone."""
        lines = [rollout_line(step, rollout) for rollout in rollouts if rollout.id not in self._rollouts]
        self._write(lines)
        for line in lines:
            self._take(line)

    def close_step(self, record: StepRecord) -> None:
        """Record that a step is complete, with its metrics."""
        line = {"type": "step", "step": record.step, "rollouts": int(record.counts.sum()), "metrics": record.metrics}
        self._write([line])
        self._take(line)

    def known(self, step: int) -> dict[str, Rollout]:
        """Rollouts of `step` already paid for and observed, by id; empty unless `step` is the last step."""
        return dict(self._rollouts) if step == self.last_step else {}

    def rewind(self, step: int) -> int:
        """Say that the run resumes at `step`: what the file holds from there on was paid for and lost.

        Returns the number of rollouts lost, 0 when the ledger ends before `step`.
        """
        lost = sum(count for at, count in self._paid_by_step.items() if at >= step)
        if lost:
            line = {"type": "rewind", "step": step, "rollouts_lost": lost}
            self._write([line])
            self._take(line)
        return lost

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, lines: list[dict[str, Any]]) -> None:
        if lines:
            self._file.write("".join(json.dumps(line, allow_nan=False) + "\n" for line in lines))
            self._file.flush()

    def _take(self, line: dict[str, Any]) -> None:
        step = int(line["step"])
        if line["type"] == "rewind":
            self._paid_by_step = {at: count for at, count in self._paid_by_step.items() if at < step}
            self.last_step, self._waves, self._rollouts = step - 1, {}, {}
        elif step != self.last_step:
            self.last_step, self._waves, self._rollouts = step, {}, {}
        if line["type"] == "wave":
            self._waves[int(line["wave"])] = [entry["id"] for entry in line["rollouts"]]
            self.paid += len(line["rollouts"])
            self._paid_by_step[step] = self._paid_by_step.get(step, 0) + len(line["rollouts"])
        elif line["type"] == "rollout":
            self._rollouts[line["id"]] = read_rollout(line)

    def _read(self) -> None:
        keep = 0
        with self.path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if not raw.endswith(b"\n") and is_cut_short(raw):
                    break
                try:
                    self._take(json.loads(raw))
                except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
                    raise RollwiseError(
                        f"ledger: {self.path} line {number} is not a ledger line ({error}); give another folder"
                    ) from None
                keep += len(raw)
        with self.path.open("r+b") as file:
            file.truncate(keep)


def is_cut_short(line: bytes) -> bool:
    """Whether a last line without its end can be the start of a ledger line; anything else is somebody else's file."""
    start = b'{"type": "'
    return line.startswith(start) or start.startswith(line)


def rollout_line(step: int, rollout: Rollout) -> dict[str, Any]:
    """The ledger line of one observed rollout."""
    return {
        "type": "rollout",
        "step": step,
        "id": rollout.id,
        "prompt_id": rollout.prompt_id,
        "group_id": rollout.group_id,
        "wave": rollout.wave,
        "outcome": rollout.outcome.value,
        "reward": None if rollout.reward is None else float(rollout.reward),
        "answer": rollout.answer,
        "tokens": int(rollout.tokens),
        "logprob": None if rollout.logprob is None else float(rollout.logprob),
        "belief": list(rollout.belief),
    }


def read_rollout(line: dict[str, Any]) -> Rollout:
    """The rollout of one ledger line."""
    fields = {
        key: line[key] for key in ("id", "prompt_id", "group_id", "wave", "reward", "answer", "tokens", "logprob")
    }
    return Rollout(**fields, outcome=Outcome(line["outcome"]), belief=(line["belief"][0], line["belief"][1]))
