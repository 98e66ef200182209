"""GRESO (arXiv 2506.02177): prompts that kept giving dead groups are skipped more and more often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rollwise.beliefs import PriorSource
from rollwise.selectors.passes import Passes, check_pool
from rollwise.types import IntArray, RollwiseError, StepRecord

STEP = 0.01
"""How far an exploration probability moves after a step."""
BOUNDS = (0.05, 0.95)
LEAST = 0.01
"""No prompt is taken with a lower probability."""


class GRESO:
    """Candidates in shuffled passes; one whose last z visits were dead is taken with probability `max(p^z, 0.01)`.

    p is `p_easy` where the last dead group was all correct and `p_hard` where all wrong. After a step of the second pass
    and later, each moves by 0.01 within [0.05, 0.95]: down where its kind's share of dead groups reached its target.

    Args:
        p_easy, p_hard: at the start.
        target: share of dead groups aimed at, a third of it easy and two thirds hard.
        seed: of the passes.
    """

    name = "greso"
    needs: frozenset[str] = frozenset()
    copies = False
    done = False

    def __init__(self, p_easy: float = 0.5, p_hard: float = 0.5, target: float = 0.25, seed: int = 0) -> None:
        for name, value in (("p_easy", p_easy), ("p_hard", p_hard), ("target", target)):
            if not 0 < value <= 1:
                raise RollwiseError(f"greso {name}: {value} is out of range; give a number above 0 and up to 1")
        self.explore = {"easy": p_easy, "hard": p_hard}
        self.targets = {"easy": target / 3, "hard": 2 * target / 3}
        self._passes = Passes(seed)
        # signed runs of dead visits: +z all correct, -z all wrong
        self._runs: dict[str, int] = {}
        self._skipped = 0.0

    def select(self, pool: Sequence[str], beliefs: PriorSource, n: int, rng: np.random.Generator) -> IntArray:
        """The next n places that are not skipped."""
        check_pool(pool, n)
        found: dict[int, None] = {}
        seen = 0
        while len(found) < n:
            place = int(self._passes.draw(len(pool), 1)[0])
            seen += 1
            if place not in found and rng.random() < self.chance(str(pool[place])):
                found[place] = None
        self._skipped = 1.0 - n / seen
        return np.array(list(found), dtype=np.int64)

    def chance(self, prompt_id: str) -> float:
        """Probability that the prompt is taken when its turn comes."""
        run = self._runs.get(prompt_id, 0)
        return max(LEAST, self.explore["easy" if run > 0 else "hard"] ** abs(run)) if run else 1.0

    def observe(self, record: StepRecord) -> None:
        """Count dead visits in a row, and move the exploration probabilities."""
        known = record.successes + record.failures
        easy = (known > 0) & (record.failures == 0)
        hard = (known > 0) & (record.successes == 0)
        for key, n, all_right, all_wrong in zip(record.prompt_ids, known, easy, hard, strict=True):
            run = self._runs.get(key, 0)
            if all_right or all_wrong:
                # a run goes on whichever way its groups died; the last one says of which kind it is
                self._runs[key] = (abs(run) + 1) * (1 if all_right else -1)
            elif n:
                self._runs.pop(key, None)
        if self._passes.passes > 0:
            for kind, dead in (("easy", easy), ("hard", hard)):
                down = dead.mean() >= self.targets[kind]
                self.explore[kind] = float(np.clip(self.explore[kind] + (-STEP if down else STEP), *BOUNDS))

    def metrics(self) -> dict[str, float]:
        return {
            "greso_p_easy": self.explore["easy"],
            "greso_p_hard": self.explore["hard"],
            "greso_skipped_share": self._skipped,
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "explore": dict(self.explore),
            "runs": dict(self._runs),
            "passes": self._passes.state_dict(),
            "skipped": self._skipped,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.explore = {kind: float(value) for kind, value in state["explore"].items()}
        self._runs = {key: int(run) for key, run in state["runs"].items()}
        self._passes.load_state_dict(state["passes"])
        self._skipped = float(state["skipped"])
