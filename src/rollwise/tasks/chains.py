"""A procedural reasoning task of graded difficulty: left-to-right chains of digits mod 10 with a scratchpad.

"7+5*3=" is read left to right without precedence: 7+5 is 2, 2*3 is 6, so the answer is the running values "26".
Every running value must be right, so luck solves a chain of L operators with probability 10^-L only.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

import numpy as np

from rollwise.types import RollwiseError

if TYPE_CHECKING:
    from datasets import Dataset

Split = Literal["train", "test"]

OPERATORS: dict[str, str] = {"plus": "+", "minus": "-", "times": "*", "mixed": "+-*"}
"""Family of chains -> the operators they draw from."""

LENGTHS: tuple[int, ...] = (2, 4, 6, 8)
"""Operators per chain in the built-in data set; a class is a family and a length, such as "times-6"."""

LONGEST = 8
"""Operators of the longest chain; shorter ones are filled with spaces before "=", so operands keep their places."""

FACTORS: tuple[int, ...] = (2, 3, 4, 6, 7, 8, 9)
"""Digits after "*"; with 0, 1 and 5 most products would end at 0 and stay."""

TEST_SHARE = 5
"""One chain in so many belongs to the test split; which one is a hash of the chain, whatever the seed."""


def apply_operator(value: int, operator: str, digit: int) -> int:
    """One step of a chain: (value operator digit) mod 10."""
    return {"+": value + digit, "-": value - digit, "*": value * digit}[operator] % 10


def solve_chain(chain: str) -> str:
    """The running values of a chain, one digit per operator: solve_chain("7+5*3") == "26"."""
    value, values = int(chain[0]), []
    for operator, digit in zip(chain[1::2], chain[2::2], strict=True):
        value = apply_operator(value, operator, int(digit))
        values.append(str(value))
    return "".join(values)


def split_of(chain: str) -> Split:
    """The split a chain belongs to, by hash: the same on every machine and for every seed and size."""
    return "test" if hashlib.blake2b(chain.encode(), digest_size=4).digest()[0] % TEST_SHARE == 0 else "train"


def draw_chain(family: str, length: int, rng: np.random.Generator) -> str:
    """One random chain of `length` operators, of either split.

    Products start from neither 0 nor 5 (see FACTORS); a mixed chain has at least two kinds of operator, so that no
    chain is of two classes.
    """
    choices = OPERATORS[family]
    operators = [choices[i] for i in rng.integers(len(choices), size=length)]
    while len(choices) > 1 and len(set(operators)) == 1:
        operators = [choices[i] for i in rng.integers(len(choices), size=length)]
    draws = rng.integers(1 << 30, size=length + 1)
    starts = (1, 2, 3, 4, 6, 7, 8, 9) if family == "times" else range(10)
    chain = str(starts[draws[0] % len(starts)])
    for operator, draw in zip(operators, draws[1:], strict=True):
        digits = FACTORS if operator == "*" else range(10)
        chain += f"{operator}{digits[draw % len(digits)]}"
    return chain


def format_prompt(chain: str) -> str:
    """The prompt of a chain: the chain, spaces in place of the operators it has fewer than LONGEST, "="."""
    return f"{chain}{' ' * (LONGEST - len(chain) // 2)}="


def build_chains(
    split: Split = "train",
    size: int = 2048,
    seed: int = 0,
    *,
    families: tuple[str, ...] = tuple(OPERATORS),
    lengths: tuple[int, ...] = LENGTHS,
) -> Dataset:
    """The data set: `size` distinct chains spread evenly over families x lengths, in an order shuffled by `seed`.

    Columns: `prompt` (plain string), `answer` (the running values), `difficulty` (class, such as "times-6"), `id`
    (the chain itself). Train and test never share a chain. Needs the `datasets` library.

    Raises:
        RollwiseError: unknown split or family, lengths outside 2-8, or more chains asked of a class than it has.
    """
    from datasets import Dataset

    if split not in ("train", "test"):
        raise RollwiseError(f"split is {split!r}: chains have 'train' and 'test'")
    if unknown := [family for family in families if family not in OPERATORS]:
        raise RollwiseError(f"families has {unknown[0]!r}: choose from {', '.join(OPERATORS)}")
    if not families or not lengths or min(lengths) < 2 or max(lengths) > LONGEST:
        raise RollwiseError(f"lengths is {lengths}: chains have 2 to {LONGEST} operators")
    if size < 1:
        raise RollwiseError(f"size is {size}: ask for at least 1 chain")
    classes = [(family, length) for length in lengths for family in families]
    most = len(classes) * min(capacity(family, length, split) for family, length in classes)
    if size > most:
        raise RollwiseError(f"size is {size}: ask for at most {most} {split} chains of these classes")
    rng = np.random.default_rng([seed, split == "test"])
    rows: list[dict[str, str]] = []
    for place, (family, length) in enumerate(classes):
        wanted = size // len(classes) + (place < size % len(classes))
        rows += [
            {
                "prompt": format_prompt(chain),
                "answer": solve_chain(chain),
                "difficulty": f"{family}-{length}",
                "id": chain,
            }
            for chain in draw_distinct(family, length, split, wanted, rng)
        ]
    return Dataset.from_list([rows[i] for i in rng.permutation(len(rows))])


def capacity(family: str, length: int, split: Split) -> int:
    """How many different chains of a class and split may be asked for: half of them, lest drawing takes long."""
    there = 8 * len(FACTORS) ** length if family == "times" else 10 * 10**length
    return there // TEST_SHARE * (1 if split == "test" else TEST_SHARE - 1) // 2


def draw_distinct(family: str, length: int, split: Split, wanted: int, rng: np.random.Generator) -> list[str]:
    """`wanted` different chains of one class and split; no more than `capacity`."""
    chains: dict[str, None] = {}
    while len(chains) < wanted:
        chain = draw_chain(family, length, rng)
        if split_of(chain) == split:
            chains[chain] = None
    return list(chains)
