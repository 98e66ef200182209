"""A population of prompts as success probabilities: rates and the share of prompts at each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rollwise.beliefs.fit import fit_prior
from rollwise.beliefs.quadrature import beta_nodes
from rollwise.types import FloatArray, RollwiseError


@dataclass(frozen=True, eq=False)
class Pool:
    """`shares` (R,) sum to 1 over `rates` (R,); `prior` is the Beta the pool is, or was fitted with."""

    rates: FloatArray
    shares: FloatArray
    prior: tuple[float, float] | None = None

    @classmethod
    def beta(cls, a: float, b: float, count: int = 200) -> Pool:
        """Beta(a, b) as `count` Gauss-Jacobi nodes: moments are exact, single nodes mean nothing."""
        rates, shares = beta_nodes(float(a), float(b), count)
        return cls(rates, shares, (float(a), float(b)))

    @classmethod
    def histogram(cls, rates: ArrayLike, shares: ArrayLike) -> Pool:
        """Given rates (R,) and shares (R,) of any positive sum.

        Raises:
            RollwiseError: a rate outside [0, 1], a negative share, nothing at all.
        """
        p, share = np.asarray(rates, dtype=np.float64), np.asarray(shares, dtype=np.float64)
        if p.ndim != 1 or p.shape != share.shape or not p.size:
            raise RollwiseError("rates: give one share for every rate, such as 0:0.3,0.5:0.7")
        if not (np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()):
            raise RollwiseError("rates: a success rate lies between 0 and 1, such as 0.5")
        if not (np.isfinite(share).all() and (share >= 0).all() and share.sum() > 0):
            raise RollwiseError("rates: shares are numbers of at least 0, and not all 0, such as 0.3")
        return cls(p, share / share.sum())

    @classmethod
    def from_counts(cls, successes: ArrayLike, trials: ArrayLike, count: int = 200) -> Pool:
        """What P prompts' counts (P,) say about the population: the mean of their posteriors under a fitted prior.

        Raw rates s/n of a few rollouts would call every prompt with 0 of 8 hopeless; the posterior does not.

        Raises:
            RollwiseError: counts that are no counts, or no trial at all.
        """
        prior = fit_prior(successes, trials)
        if not np.any(trials):
            raise RollwiseError("counts: no prompt has a trial; give counts such as 3 successes of 8")
        rates, weights = beta_nodes(*prior, count)
        pairs, times = np.unique(
            np.stack([np.asarray(successes, dtype=np.int64), np.asarray(trials, dtype=np.int64)]),
            axis=1,
            return_counts=True,
        )
        shares = np.zeros(count)
        with np.errstate(divide="ignore"):
            log_weight, log_p, log_q = np.log(weights), np.log(rates), np.log1p(-rates)
        for s, n, k in zip(*pairs, times, strict=True):
            log_posterior = log_weight + s * log_p + (n - s) * log_q
            posterior = np.exp(log_posterior - log_posterior.max())
            shares += k * posterior / posterior.sum()
        return cls(rates, shares / shares.sum(), prior)

    @property
    def mean(self) -> float:
        """Mean success rate."""
        return float(self.shares @ self.rates)

    def coarse(self, edges: ArrayLike) -> Pool:
        """The same population at the mean rate of each bin [edges[k], edges[k+1]); empty bins are dropped."""
        cuts = np.asarray(edges, dtype=np.float64)
        bins = np.clip(np.searchsorted(cuts, self.rates, side="right") - 1, 0, len(cuts) - 2)
        share = np.bincount(bins, weights=self.shares, minlength=len(cuts) - 1)
        total = np.bincount(bins, weights=self.shares * self.rates, minlength=len(cuts) - 1)
        kept = share > 0
        return Pool(total[kept] / share[kept], share[kept].astype(np.float64), self.prior)

    def dead_share(self, n: int) -> float:
        """Share of groups of n whose outcomes are all equal: E[p^n + (1-p)^n]."""
        return float(self.shares @ (self.rates**n + (1 - self.rates) ** n))

    def unsolved_share(self, n: int) -> float:
        """Share of groups of n without a success: E[(1-p)^n]."""
        return float(self.shares @ (1 - self.rates) ** n)

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """(size,) rates of prompts drawn at random."""
        return rng.choice(self.rates, size=size, p=self.shares)
