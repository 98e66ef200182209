"""Pools of prompts as coins: what is known of a population's success rates, and how to draw a prompt from it.

A pool is written as one word: `beta:a,b`, `hard`, `easy`, a shipped record (`rlvr`, `math_cot8`), or a file of counts. A
record with several visits or runs takes `#`: `rlvr#40` (visit 40), `FILE#Pythia_1.4B_60B`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rollwise.beliefs import fit_prior, log_rising, parse_prior
from rollwise.pool import Pool
from rollwise.simulate.recorded import SHIPPED, read_counts
from rollwise.suggest import nearest
from rollwise.types import FloatArray, IntArray, RollwiseError

HARD = (0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
EASY = (0.05, 0.2, 0.33, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.9, 0.92, 0.95, 0.95, 0.97, 0.98, 0.99)


class Coins(Protocol):
    """A population that prompts are drawn from; `rollwise.pool.Pool` (rates and their shares) is one."""

    @property
    def prior(self) -> tuple[float, float] | None:
        """The Beta it is, or was fitted with."""
        ...

    @property
    def mean(self) -> float:
        """Mean success rate."""
        ...

    def dead_share(self, n: int) -> float:
        """E[p^n + (1-p)^n]."""
        ...

    def unsolved_share(self, n: int) -> float:
        """E[(1-p)^n]."""
        ...

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """(size,) rates of prompts drawn at random."""
        ...


@dataclass(frozen=True, eq=False)
class BetaPool:
    """A mixture of Betas: one of them, or the posteriors of P recorded prompts. `a`, `b`, `shares` are (K,).

    Raw rates s/n of few rollouts would call every prompt with 0 of 8 hopeless; a posterior does not.
    """

    a: FloatArray
    b: FloatArray
    shares: FloatArray
    prior: tuple[float, float]

    @classmethod
    def beta(cls, a: float, b: float) -> BetaPool:
        """Beta(a, b)."""
        return cls(np.array([a]), np.array([b]), np.ones(1), (a, b))

    @classmethod
    def from_counts(cls, successes: IntArray, trials: IntArray) -> BetaPool:
        """Equal shares of the posteriors of P prompts (P,) under a prior fitted to them (empirical Bayes).

        Raises:
            RollwiseError: counts that are no counts.
        """
        a, b = fit_prior(successes, trials)
        seen = np.asarray(trials) > 0
        s, n = np.asarray(successes)[seen], np.asarray(trials)[seen]
        if not len(n):
            raise RollwiseError("pool: no prompt has a trial; give counts such as 3 successes of 8")
        return cls((a + s).astype(np.float64), (b + n - s).astype(np.float64), np.full(len(n), 1 / len(n)), (a, b))

    @property
    def mean(self) -> float:
        """Mean success rate."""
        return float(self.shares @ (self.a / (self.a + self.b)))

    def moment(self, successes: int, failures: int) -> float:
        """E[p^s (1-p)^f]."""
        total = self.a + self.b
        logs = log_rising(self.a, successes) + log_rising(self.b, failures) - log_rising(total, successes + failures)
        return float(self.shares @ np.exp(logs))

    def dead_share(self, n: int) -> float:
        """Share of groups of n whose outcomes are all equal: E[p^n + (1-p)^n]; 2/(n+1) under Beta(1,1)."""
        return self.moment(n, 0) + self.moment(0, n)

    def unsolved_share(self, n: int) -> float:
        """Share of groups of n without a success: E[(1-p)^n]."""
        return self.moment(0, n)

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """(size,) rates of prompts drawn at random."""
        which = rng.choice(len(self.a), size=size, p=self.shares)
        return rng.beta(self.a[which], self.b[which])


def parse_pool(text: str) -> Coins:
    """The pool of that name; see the module for the forms.

    Raises:
        RollwiseError: a name that is none, a file that cannot be read, a visit or run it lacks.
    """
    if text in ("hard", "easy"):
        rates = HARD if text == "hard" else EASY
        return Pool.histogram(rates, np.ones(len(rates)))
    kind, colon, numbers = text.partition(":")
    if colon and kind == "beta":
        return BetaPool.beta(*parse_prior(numbers))
    if not text:
        raise RollwiseError("pool: empty; give beta:1,1, hard, easy, or a file of counts")
    source, _, part = text.partition("#")
    names = ("beta:1,1", "hard", "easy", *SHIPPED)
    if source not in SHIPPED and not any(mark in source for mark in "./\\"):
        raise RollwiseError(f"pool: no {text!r}; {nearest(text, names)}, or the path of a file of counts")
    return BetaPool.from_counts(*read_counts(source, part))
