"""Sets of problems: batches for the warm-up, pools to train on, and what is held out for evaluation.

One problem in five, by a hash of its prompt, is held out and never trained on, in warm-up or by rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.lab.tasks import Task
from rollwise.types import FloatArray, IntArray, RollwiseError

HELD_OUT = 5
"""One problem in so many belongs to the evaluation split."""

ROUNDS = 20
"""Draws in a row that find nothing new before a class counts as exhausted."""


@dataclass(frozen=True)
class Problems:
    """A fixed set of problems: prompts (K, P), answers (K, T), class of each (K,) as a place in `task.classes`, ids."""

    prompts: IntArray
    answers: IntArray
    classes: IntArray
    ids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, places: IntArray) -> Problems:
        """The problems at those places."""
        ids = tuple(self.ids[place] for place in places)
        return Problems(self.prompts[places], self.answers[places], self.classes[places], ids)


def join_problems(parts: Sequence[Problems]) -> Problems:
    """One set of several."""
    columns = ([getattr(part, name) for part in parts] for name in ("prompts", "answers", "classes"))
    prompts, answers, classes = (np.concatenate(column) for column in columns)
    return Problems(prompts, answers, classes, tuple(key for part in parts for key in part.ids))


def draw_batch(task: Task, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Prompts (<= n, P) and answers (<= n, T) of the training split, spread over the classes, for supervised warm-up."""
    drawn = [task.draw(label, max(1, n // len(task.classes)), rng) for label in task.classes]
    prompts, answers = (np.concatenate(part) for part in zip(*drawn, strict=True))
    kept = ~held_out(prompts)
    return prompts[kept], answers[kept]


def draw_class(
    task: Task, place: int, wanted: int, rng: np.random.Generator, *, evaluation: bool, taken: set[str]
) -> Problems:
    """`wanted` different problems of one class and split whose ids are not `taken`, or as many as there seem to be; their
    ids are then taken."""
    found: dict[str, tuple[IntArray, IntArray]] = {}
    barren = 0
    while len(found) < wanted and barren < ROUNDS:
        before = len(found)
        prompts, answers = task.draw(task.classes[place], 2 * (wanted - before) + 16, rng)
        kept = held_out(prompts) == evaluation
        for prompt, answer in zip(prompts[kept], answers[kept], strict=True):
            key = task.text(prompt).replace(" ", "")
            if key not in taken:
                found.setdefault(key, (prompt, answer))
        barren = barren + 1 if len(found) == before else 0
    ids = tuple(found)[:wanted]
    taken.update(ids)
    prompts = np.array([found[key][0] for key in ids], dtype=np.int64).reshape(-1, task.prompt_tokens)
    answers = np.array([found[key][1] for key in ids], dtype=np.int64).reshape(-1, task.answer_tokens)
    return Problems(prompts, answers, np.full(len(ids), place), ids)


def draw_problems(task: Task, size: int, rng: np.random.Generator, *, evaluation: bool = False) -> Problems:
    """`size` different problems of one split, as evenly over the classes as can be; the order is random.

    Raises:
        RollwiseError: if a class has too few problems.
    """
    kinds, taken = len(task.classes), set[str]()
    parts = []
    for place, label in enumerate(task.classes):
        wanted = size // kinds + (place < size % kinds)
        part = draw_class(task, place, wanted, rng, evaluation=evaluation, taken=taken)
        if len(part) < wanted:
            raise RollwiseError(
                f"pool_size: {size} problems, but class {label} of {task.name} has {len(part)}; "
                f"give at most {len(part) * kinds}"
            )
        parts.append(part)
    whole = join_problems(parts)
    return whole.take(rng.permutation(len(whole)))


def draw_candidates(task: Task, size: int, rng: np.random.Generator) -> Problems:
    """About `size` different training problems, fewer where a class has no more."""
    each, taken = -(-size // len(task.classes)), set[str]()
    places = range(len(task.classes))
    return join_problems([draw_class(task, place, each, rng, evaluation=False, taken=taken) for place in places])


def skew_pool(
    rates: FloatArray, size: int, rng: np.random.Generator, *, easy: float = 0.6, hard: float = 0.3
) -> IntArray:
    """(size,) places of candidates such that most groups are dead: a share is easy, one very hard, the rest middling.

    `rates` (K,) are the candidates' success rates under the warm model; easy is at least 0.95, very hard at most 0.02,
    and middling within 0.2 and 0.8. Where too few are that extreme, the nearest to it stand in.
    """
    wanted = {"easy": round(size * easy), "hard": round(size * hard)}
    wanted["middling"] = size - sum(wanted.values())
    distance = {
        "easy": np.maximum(0.95 - rates, 0.0),
        "hard": np.maximum(rates - 0.02, 0.0),
        "middling": np.maximum(np.abs(rates - 0.5) - 0.3, 0.0),
    }
    free, taken = np.ones(len(rates), dtype=bool), []
    for kind, count in wanted.items():
        # candidates in random order, so that the many at distance 0 are drawn evenly
        order = rng.permutation(np.flatnonzero(free))
        chosen = order[np.argsort(distance[kind][order], kind="stable")[:count]]
        free[chosen] = False
        taken.append(chosen)
    return rng.permutation(np.concatenate(taken))


def held_out(prompts: IntArray) -> np.ndarray:
    """(n,) whether prompts (n, P) belong to the evaluation split: the same on every machine and for every seed."""
    state = np.full(len(prompts), 14695981039346656037, dtype=np.uint64)
    for column in prompts.T:
        state = (state ^ column.astype(np.uint64)) * np.uint64(1099511628211)
    state ^= state >> np.uint64(32)
    return state % np.uint64(HELD_OUT) == 0
