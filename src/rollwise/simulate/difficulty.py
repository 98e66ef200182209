"""How many rollouts until a prompt is first solved, and how much prompts differ in it.

Only unsolved prompts are sampled further, at doubling sizes up to `limit`; the histogram counts the bin of the first
success, {1, 2, 3-4, 5-8, ..., unsolved}, and its Shannon entropy over the logarithm of the number of bins is the
difficulty entropy of the AdaRoll-GRPO paper (arXiv 2610.37429, figures 1 and 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rollwise.simulate.pools import Coins
from rollwise.types import FloatArray, IntArray, RollwiseError

Draw = Callable[[IntArray, int], np.ndarray]
"""(places of prompts (K,), k) -> whether each of k more rollouts of each is right (K, k)."""

MOST_ROLLOUTS = 1 << 20
"""Largest limit: beyond, the moments of a recorded pool lose their digits."""


@dataclass(frozen=True)
class Difficulty:
    """`shares` of prompts first solved in each of `bins`, the last being those unsolved at the limit.

    `rollouts` is what progressive sampling spends per prompt, all of a bin before the next is decided.
    """

    bins: tuple[str, ...]
    shares: tuple[float, ...]
    entropy: float
    rollouts: float


def difficulty(pool: Coins, limit: int = 128) -> Difficulty:
    """The histogram of a pool, exact: a share (l, h] is E[(1-p)^l] - E[(1-p)^h].

    Raises:
        RollwiseError: a limit that is no power of two.
    """
    ends = doubling(limit)
    alive = np.array([1.0, *(pool.unsolved_share(end) for end in ends)])
    shares = np.append(alive[:-1] - alive[1:], alive[-1])
    widths = np.diff([0, *ends])
    return Difficulty(bin_names(ends), tuple(shares.tolist()), entropy(shares), float(widths @ alive[:-1]))


def first_solved(rates: FloatArray, limit: int, rng: np.random.Generator) -> tuple[Difficulty, FloatArray]:
    """The same by sampling prompts of those rates (P,); also the rollout (P,) each was first solved at, NaN if never."""
    return sample_first_solved(lambda which, k: rng.random((len(which), k)) < rates[which, None], len(rates), limit)


def sample_first_solved(draw: Draw, prompts: int, limit: int = 128) -> tuple[Difficulty, FloatArray]:
    """The same for anything that can be sampled; `draw` is asked once a bin, for the prompts unsolved so far.

    Raises:
        RollwiseError: a limit that is no power of two, or no prompts.
    """
    ends = doubling(limit)
    if prompts < 1:
        raise RollwiseError("prompts: none to sample; give 1 or more")
    solved = np.full(prompts, np.nan)
    shares, spent, low = [], 0, 0
    for end in ends:
        open_ = np.flatnonzero(np.isnan(solved))
        hit: np.ndarray = np.zeros(0, dtype=bool)
        if len(open_):
            wins = np.asarray(draw(open_, end - low), dtype=bool)
            spent += wins.size
            hit = np.asarray(wins.any(axis=1))
            solved[open_[hit]] = low + 1 + wins[hit].argmax(axis=1)
        shares.append(hit.sum() / prompts)
        low = end
    found = np.array([*shares, np.isnan(solved).mean()])
    return Difficulty(bin_names(ends), tuple(found.tolist()), entropy(found), spent / prompts), solved


def entropy(shares: FloatArray) -> float:
    """-sum p ln p / ln(number of bins): 0 where all prompts are alike, 1 where every bin is as full."""
    p = np.clip(np.asarray(shares, dtype=np.float64), 0.0, None)
    used = p[p > 0] / p.sum()
    return abs(float(-(used * np.log(used)).sum() / np.log(len(p))))


def doubling(limit: int) -> list[int]:
    """1, 2, 4, ..., limit.

    Raises:
        RollwiseError: a limit that is no power of two.
    """
    if not 2 <= limit <= MOST_ROLLOUTS or limit & (limit - 1):
        raise RollwiseError(f"limit: {limit} is no power of two up to {MOST_ROLLOUTS}; give one, such as 128")
    return [2**k for k in range(limit.bit_length())]


def bin_names(ends: list[int]) -> tuple[str, ...]:
    """ "1", "2", "3-4", ..., "unsolved"."""
    pairs = zip([0, *ends[:-1]], ends, strict=True)
    return (*(str(high) if high - low == 1 else f"{low + 1}-{high}" for low, high in pairs), "unsolved")
