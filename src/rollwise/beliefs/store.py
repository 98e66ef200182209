"""Beliefs carried between visits, keyed by prompt id, in arrays that grow to millions of prompts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.beliefs.fit import check_counts
from rollwise.beliefs.prior import FLAT
from rollwise.types import FloatArray, IntArray, RollwiseError

FORMAT = 1
_FIRST = 1024


class BeliefStore:
    """Evidence about prompts beyond the population's prior, faded by `discount` at every visit.

        a <- a0 + discount (a - a0) + s,     b <- b0 + discount (b - b0) + f      (CERO, arXiv 2606.05606)

    A prompt never visited has the prior. What is kept is the evidence a - a0, so a new prior moves all beliefs at once.
    A visit without a known outcome (s = f = 0) changes nothing. Takes 24 bytes a prompt in arrays, up to twice that
    while they grow, and the ids' own dictionary (`nbytes` says how much). With `limit`, the prompts visited longest ago
    are forgotten once there are more than `limit`; a sixteenth at a time.

    Raises:
        RollwiseError: a discount outside [0, 1], a prior that is no Beta, a limit below 1.
    """

    def __init__(self, prior: tuple[float, float] = FLAT, discount: float = 1.0, limit: int | None = None) -> None:
        if not 0 <= discount <= 1:
            raise RollwiseError(f"prior_discount: {discount} is out of range; give a number from 0 to 1, such as 0.85")
        if limit is not None and limit < 1:
            raise RollwiseError(f"prior_limit: {limit} prompts; give 1 or more, or none for no limit")
        if not (0 < prior[0] < np.inf and 0 < prior[1] < np.inf):
            raise RollwiseError(f"prior: {prior!r} is not a Beta prior; give two positive numbers, such as 1,1")
        self.base = (float(prior[0]), float(prior[1]))
        self.discount = float(discount)
        self.limit = limit
        self._row: dict[str, int] = {}
        self._evidence = np.zeros((0, 2))
        self._visit = np.zeros(0, dtype=np.int64)
        self._clock = 0
        self._free: list[int] = []

    def __len__(self) -> int:
        """Prompts that were visited and not forgotten."""
        return len(self._row)

    def prior(self, prompt_ids: Sequence[str]) -> FloatArray:
        """(B, 2) the beliefs (a, b) to open a step with; never changes the store."""
        rows = np.array([self._row.get(str(key), -1) for key in prompt_ids], dtype=np.int64)
        found = np.tile(np.array(self.base), (len(rows), 1))
        known = rows >= 0
        found[known] += self._evidence[rows[known]]
        return found

    def update(self, prompt_ids: Sequence[str], successes: ArrayLike, failures: ArrayLike) -> None:
        """Take in one visit: counts (B,) of each prompt; an id that occurs twice is one visit with the sums.

        Raises:
            RollwiseError: lengths that differ, or counts that are not whole numbers of at least 0.
        """
        s, f = np.asarray(successes), np.asarray(failures)
        if s.shape != (len(prompt_ids),) or f.shape != s.shape:
            raise RollwiseError(f"beliefs: {len(prompt_ids)} prompts but counts of shape {s.shape} and {f.shape}")
        check_counts(s, s + f)
        self._clock += 1
        touched: list[int] = []
        visited: dict[str, list[int]] = {}
        for key, won, lost in zip(prompt_ids, s.tolist(), f.tolist(), strict=True):
            if won + lost:
                sums = visited.setdefault(str(key), [0, 0])
                sums[0] += int(won)
                sums[1] += int(lost)
        for key in visited:
            if key not in self._row:
                self._row[key] = self._take_row()
            touched.append(self._row[key])
        if touched:
            rows = np.array(touched)
            self._evidence[rows] = self.discount * self._evidence[rows] + np.array(list(visited.values()), dtype=float)
            self._visit[rows] = self._clock
        if self.limit is not None and len(self._row) > self.limit:
            self._forget(len(self._row) - self.limit + self.limit // 16)

    @property
    def nbytes(self) -> int:
        """Bytes held: arrays, the dictionary and its numbers, and the characters of the ids."""
        ids = sum(map(sys.getsizeof, self._row)) + 28 * len(self._row)
        return int(self._evidence.nbytes + self._visit.nbytes + self._row.__sizeof__() + ids)

    def state_dict(self) -> dict[str, Any]:
        """Everything, as numbers and arrays; ids are one array of UTF-8 bytes and one of where each ends."""
        encoded = [key.encode() for key in self._row]
        rows = np.fromiter(self._row.values(), dtype=np.int64, count=len(self._row))
        return {
            "format": FORMAT,
            "base": np.array(self.base),
            "discount": self.discount,
            "limit": -1 if self.limit is None else self.limit,
            "clock": self._clock,
            "ids": np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(),
            "ends": np.cumsum([len(key) for key in encoded], dtype=np.int64),
            "evidence": self._evidence[rows],
            "visits": self._visit[rows],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state; arrays may have become lists (JSON). Nothing changes where it is refused.

        Raises:
            RollwiseError: another format, or parts that do not fit each other.
        """
        try:
            if int(state["format"]) != FORMAT:
                raise RollwiseError(f"beliefs: format {int(state['format'])}; this version reads {FORMAT}")
            ends: IntArray = np.asarray(state["ends"], dtype=np.int64)
            text = np.asarray(state["ids"], dtype=np.uint8).tobytes()
            evidence = np.asarray(state["evidence"], dtype=np.float64).reshape(-1, 2).copy()
            visits = np.asarray(state["visits"], dtype=np.int64).copy()
            starts = np.concatenate([[0], ends[:-1]]).astype(int)
            ids = [text[low:high].decode() for low, high in zip(starts, ends.tolist())]
            base = tuple(float(x) for x in state["base"])
            limit = int(state["limit"])
            fresh = BeliefStore((base[0], base[1]), float(state["discount"]), None if limit < 0 else limit)
            clock = int(state["clock"])
        except RollwiseError:
            raise
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise RollwiseError(f"beliefs: the saved state is damaged ({type(error).__name__}: {error})") from None
        size = len(ids)
        sound = (
            len(set(ids)) == size == len(evidence) == len(visits)
            and (not size or (ends[-1] == len(text) and ends[0] >= 0 and (np.diff(ends) >= 0).all()))
            and np.isfinite(evidence).all()
            and (evidence >= 0).all()
        )
        if not sound:
            raise RollwiseError("beliefs: the saved state is damaged; its parts do not fit each other")
        self.base, self.discount, self.limit = fresh.base, fresh.discount, fresh.limit
        self._row = {key: row for row, key in enumerate(ids)}
        self._evidence, self._visit, self._clock, self._free = evidence, visits, clock, []

    def save(self, path: str | Path) -> None:
        """Write the state as .npz, whole or not at all.

        Raises:
            RollwiseError: the file cannot be written.
        """
        target = Path(path)
        draft = target.with_name(target.name + ".tmp")
        try:
            with draft.open("wb") as file:
                np.savez_compressed(file, **self.state_dict())
            os.replace(draft, target)
        except OSError as error:
            raise RollwiseError(f"beliefs: {target} cannot be written ({error.strerror}); give another path") from None

    @classmethod
    def load(cls, path: str | Path) -> BeliefStore:
        """Read what `save` wrote; nothing in the file is executed.

        Raises:
            RollwiseError: no such file, or one that is damaged or of another kind.
        """
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                state = {name: file[name] if file[name].ndim else file[name].item() for name in file.files}
        except FileNotFoundError:
            raise RollwiseError(f"beliefs: {path} does not exist; give a file written by BeliefStore.save") from None
        except Exception as error:  # what numpy and zipfile raise on damaged bytes has no end
            raise RollwiseError(f"beliefs: {path} is damaged or no belief file ({type(error).__name__})") from None
        store = cls()
        store.load_state_dict(state)
        return store

    def _take_row(self) -> int:
        if self._free:
            return self._free.pop()
        row = len(self._row)
        if row >= len(self._visit):
            # a half more each time: amortised, and never twice what is needed
            spare = max(_FIRST, len(self._visit) // 2)
            self._evidence = np.concatenate([self._evidence, np.zeros((spare, 2))])
            self._visit = np.concatenate([self._visit, np.zeros(spare, dtype=np.int64)])
        return row

    def _forget(self, count: int) -> None:
        keys = list(self._row)
        ages = self._visit[np.fromiter(self._row.values(), dtype=np.int64, count=len(keys))]
        # stable, so that equally old prompts go in order of arrival on every process
        for place in np.argsort(ages, kind="stable")[: min(count, len(keys) - 1)]:
            row = self._row.pop(keys[place])
            self._evidence[row] = 0.0
            self._free.append(row)
