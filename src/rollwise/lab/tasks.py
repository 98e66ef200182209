"""Procedural tasks of graded difficulty, drawn, encoded and graded as whole arrays of tokens.

Every prompt of a task has P tokens (short ones are filled with spaces) and every answer T tokens (its words, END, PAD).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rollwise.lab.model import END, PAD
from rollwise.suggest import nearest
from rollwise.types import IntArray, RollwiseError

Draw = Callable[[str, int, np.random.Generator], tuple[IntArray, IntArray]]
"""(class, n, rng) -> prompts (n, P) and answers (n, T) as tokens."""

DIGITS = tuple("0123456789")
SPACE, ZERO = 2, 3
"""Token ids after PAD and END in every vocabulary: a space, then the ten digits."""


@dataclass(frozen=True)
class Task:
    """A family of problems.

    `strict` asks for the whole answer, so that a problem's success rate is one likelihood; else the last word before
    the end counts only.
    """

    name: str
    words: tuple[str, ...]
    classes: tuple[str, ...]
    prompt_tokens: int
    answer_tokens: int
    draw: Draw
    strict: bool = True

    def grade(self, completions: IntArray, answers: IntArray) -> np.ndarray:
        """(n,) whether completions (n, T) answer like answers (n, T); one that never ended is wrong."""
        if self.strict:
            return (completions == answers).all(axis=1)
        return _last(completions) == _last(answers)

    def answers(self, completions: IntArray) -> list[str]:
        """What completions (n, T) answer, to be voted on: what is graded of each, "" where one never ended."""
        if self.strict:
            return [self.text(row) if (row == END).any() else "" for row in completions]
        return [self.words[word] if word >= 0 else "" for word in _last(completions)]

    def text(self, tokens: IntArray) -> str:
        """What tokens (S,) read like, up to END."""
        known = [int(token) for token in tokens]
        return "".join(self.words[token] for token in known[: known.index(END) if END in known else None])


def get_task(name: str) -> Task:
    """The task of that name; "-final" behind `chains` or `division` rewards the final value alone.

    Raises:
        RollwiseError: for an unknown name.
    """
    if name not in TASKS:
        raise RollwiseError(f"task: no {name!r}; {nearest(name, TASKS)}")
    return TASKS[name]


def _last(tokens: IntArray) -> IntArray:
    """(n,) the word before END in tokens (n, T); -1 without END, -2 where nothing comes before it."""
    ended = tokens == END
    end = ended.argmax(axis=1)
    last = np.where(end > 0, tokens[np.arange(len(tokens)), np.maximum(end - 1, 0)], -2)
    return np.where(ended.any(axis=1), last, -1)


def _layout(parts: list[IntArray], prompt_tokens: int) -> IntArray:
    """(n, prompt_tokens) columns side by side, spaces, and "=" (the word after the digits) in the last place."""
    body = np.concatenate([part if part.ndim == 2 else part[:, None] for part in parts], axis=1)
    spaces = np.full((len(body), prompt_tokens - 1 - body.shape[1]), SPACE)
    return np.concatenate([body, spaces, np.full((len(body), 1), EQUALS)], axis=1)


def _answer(values: IntArray, lengths: IntArray | int, answer_tokens: int) -> IntArray:
    """(n, answer_tokens) the first `lengths` words of values (n, .), END, PAD."""
    found = np.full((len(values), answer_tokens), PAD)
    found[:, : values.shape[1]] = values
    places, ends = np.arange(answer_tokens), np.broadcast_to(lengths, len(values))[:, None]
    return np.where(places < ends, found, np.where(places == ends, END, PAD))


EQUALS = ZERO + 10
_OPERATORS = {"plus": "+", "minus": "-", "times": "*", "mixed": "+-*"}
_BASE = ("", "", " ", *DIGITS, "=")


def draw_chains(label: str, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Chains of digits mod 10 read left to right, the running values as the answer: `rollwise.tasks.chains`."""
    family, length = label.split("-")[0], int(label.split("-")[1])
    kinds = np.array(["+-*".index(operator) for operator in _OPERATORS[family]])
    operators = kinds[rng.integers(len(kinds), size=(n, length))]
    if len(kinds) > 1:  # a chain of one kind belongs to another class
        alike = (operators == operators[:, :1]).all(axis=1)
        operators[alike, -1] = (operators[alike, 0] + rng.integers(1, 3, size=alike.sum())) % 3
    # as in `rollwise.tasks.chains`: products that reach 0 or 5 stay there, so times starts elsewhere and avoids 0, 1, 5
    factors, starts = np.array([2, 3, 4, 6, 7, 8, 9]), np.array([1, 2, 3, 4, 6, 7, 8, 9])
    digits = np.where(operators == 2, rng.choice(factors, (n, length)), rng.integers(10, size=(n, length)))
    start = value = rng.choice(starts, n) if family == "times" else rng.integers(10, size=n)
    values = np.zeros((n, length), dtype=np.int64)
    for place, (operator, digit) in enumerate(zip(operators.T, digits.T, strict=True)):
        value = np.choose(operator, [value + digit, value - digit, value * digit]) % 10
        values[:, place] = value
    pairs = np.stack([EQUALS + 1 + operators, ZERO + digits], axis=2).reshape(n, 2 * length)
    return _layout([start + ZERO, pairs], 18), _answer(values + ZERO, length, 9)


def draw_division(label: str, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Long division of a number by a digit: the running remainders, r <- (10 r + digit) mod divisor."""
    divisor, length = (int(part) for part in label.removeprefix("by").split("-"))
    digits = rng.integers(10, size=(n, length))
    digits[:, 0] = rng.integers(1, 10, size=n)
    value, values = np.zeros(n, dtype=np.int64), np.zeros((n, length), dtype=np.int64)
    for place in range(length):
        value = (10 * value + digits[:, place]) % divisor
        values[:, place] = value
    return _layout([np.full(n, ZERO + divisor), digits + ZERO], 10), _answer(values + ZERO, length, 9)


def draw_sort(label: str, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Digits in ascending or descending order, repeats kept."""
    direction, length = label.split("-")[0], int(label.split("-")[1])
    digits = rng.integers(10, size=(n, length))
    ordered = np.sort(digits, axis=1)[:, :: 1 if direction == "up" else -1]
    sign = np.full(n, EQUALS + 1 + (direction == "down"))
    return _layout([sign, digits + ZERO], 11), _answer(ordered + ZERO, length, 10)


def draw_rewrite(label: str, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Digits rewritten by one or two rules: r reverses, s adds 3 to each mod 10, w swaps neighbours, h puts halves last
    first."""
    rules, length = label.split("-")[0], int(label.split("-")[1])
    digits = found = rng.integers(10, size=(n, length))
    for rule in rules:
        if rule == "r":
            found = found[:, ::-1]
        elif rule == "s":
            found = (found + 3) % 10
        elif rule == "w":
            found = found.reshape(n, -1, 2)[:, :, ::-1].reshape(n, length)
        else:
            found = np.roll(found, length // 2, axis=1)
    signs = [np.full(n, EQUALS + 1 + "rswh".index(rule)) for rule in rules] + [np.full(n, SPACE)] * (2 - len(rules))
    return _layout([*signs, digits + ZERO], 11), _answer(found + ZERO, length, 9)


def draw_brackets(label: str, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """The closing brackets that complete a sequence, innermost first."""
    kinds, length = (int(part) for part in label.removeprefix("of").split("-"))
    depth = np.zeros(n, dtype=np.int64)
    stack, prompt = np.zeros((n, length), dtype=np.int64), np.zeros((n, length), dtype=np.int64)
    everyone = np.arange(n)
    for place in range(length):
        opens = (depth == 0) | (rng.random(n) < 0.6)
        kind = rng.integers(kinds, size=n)
        inner = stack[everyone, np.maximum(depth - 1, 0)]
        prompt[:, place] = EQUALS + 1 + np.where(opens, kind, 4 + inner)
        stack[everyone[opens], depth[opens]] = kind[opens]
        depth += np.where(opens, 1, -1)
    # the stack from its top down; what lies beyond the depth is cut by the answer's length
    places = np.maximum(depth[:, None] - 1 - np.arange(length), 0)
    closing = EQUALS + 5 + np.take_along_axis(stack, places, axis=1)
    return _layout([prompt], 13), _answer(closing, depth, 13)


def _grid(names: tuple[str, ...], lengths: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{name}-{length}" for length in lengths for name in names)


_CHAINS = Task("chains", (*_BASE, *"+-*"), _grid(tuple(_OPERATORS), (2, 4, 6, 8)), 18, 9, draw_chains)
_DIVISION = Task("division", _BASE, _grid(("by3", "by4", "by6", "by7", "by8", "by9"), (4, 6, 8)), 10, 9, draw_division)
TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _CHAINS,
        replace(_CHAINS, name="chains-final", strict=False),
        _DIVISION,
        replace(_DIVISION, name="division-final", strict=False),
        Task("sort", (*_BASE, "^", "v"), _grid(("up", "down"), (3, 5, 7, 9)), 11, 10, draw_sort),
        Task(
            "rewrite",
            (*_BASE, *"rswh"),
            _grid(("r", "s", "w", "h", "rs", "ws", "hs", "rw", "hr"), (4, 8)),
            11,
            9,
            draw_rewrite,
        ),
        Task("brackets", (*_BASE, *"([{<)]}>"), _grid(("of2", "of3", "of4"), (8, 10, 12)), 13, 13, draw_brackets),
    )
}
"""Task by name."""
