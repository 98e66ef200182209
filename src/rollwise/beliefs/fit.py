"""Learn from counts: the population's Beta prior, and how fast old evidence goes stale.

Counts of s successes in n trials have the beta-binomial likelihood `(a)_s (b)_f / (a+b)_n`, with (x)_k = x(x+1)...(x+k-1)
and f = n - s; the binomial coefficient does not depend on a and b. It holds under adaptive stopping too, since the
decision when to stop looked at outcomes only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rollwise.beliefs.quadrature import log_rising
from rollwise.types import FloatArray, IntArray, RollwiseError

BOUNDS = (1e-2, 1e3)
"""Smallest and largest a and b a fit may return."""

SPREAD = 2.0
"""Standard deviation of ln a and ln b around 0, the pull of a fit towards Beta(1,1)."""


def fit_prior(successes: ArrayLike, trials: ArrayLike, shrink: float = 1.0) -> tuple[float, float]:
    """Beta(a0, b0) of a population by beta-binomial maximum likelihood (empirical Bayes).

        sum_i ln (a)_{s_i} + ln (b)_{f_i} - ln (a+b)_{n_i}  -  shrink (ln(a)^2 + ln(b)^2) / (2 SPREAD^2)

    is maximised, by damped Newton in (ln a, ln b). The last term pulls towards Beta(1,1) with less force than one group:
    it decides where counts say nothing (no group, one group, all wrong, all right) and is lost among hundreds of groups;
    `shrink=0` is plain maximum likelihood. Both numbers stay within `BOUNDS`. Deterministic.

    Args:
        successes, trials: (P,) counts of P groups; groups without trials are ignored.

    Raises:
        RollwiseError: shapes that differ, or counts that are not whole numbers with 0 <= s <= n.
    """
    s, n = check_counts(successes, trials)
    tails = tuple(np.cumsum(np.bincount(x)[::-1])[::-1][1:].astype(np.float64) for x in (s, n - s, n))
    low, high = np.log(BOUNDS)
    at = np.clip(np.log(_moments(s, n)), low, high)
    value, slope, bend = _posterior(at, tails, shrink)
    damping = 1e-3
    for _ in range(200):
        # a coordinate pressed against its bound is held there
        held = ((at <= low) & (slope < 0)) | ((at >= high) & (slope > 0))
        if np.abs(np.where(held, 0.0, slope)).max() < 1e-9 * max(1.0, float(tails[2][0]) if len(tails[2]) else 1.0):
            break
        down = -bend + damping * np.diag(np.abs(np.diag(bend)) + 1e-12)
        down[held] = down[:, held] = 0.0
        down[held, held] = 1.0
        determinant = down[0, 0] * down[1, 1] - down[0, 1] ** 2
        if down[0, 0] > 0 and determinant > 0:
            to = np.clip(at + np.linalg.solve(down, np.where(held, 0.0, slope)).clip(-2, 2), low, high)
            reached = _posterior(to, tails, shrink)
            if reached[0] > value:
                at, (value, slope, bend), damping = to, reached, max(damping / 10, 1e-12)
                continue
        damping *= 10
        if damping > 1e16:
            break
    return float(np.exp(at[0])), float(np.exp(at[1]))


def predictive_score(
    successes: ArrayLike, trials: ArrayLike, discount: float, prior: tuple[float, float] = (1.0, 1.0)
) -> float:
    """Mean log-likelihood of every visit but the first, predicted from the visits before it.

    Visit t is judged under Beta(a0 + e_t, b0 + d_t), with evidence `e_{t+1} = discount e_t + s_t` and
    `d_{t+1} = discount d_t + f_t`; a visit without trials leaves the evidence where it was. Natural log of the
    beta-binomial probability of one visit, so 0 is perfect.

    Args:
        successes, trials: (P, T) counts of P prompts at T visits in order.
    """
    s, n = check_counts(successes, trials)
    gain, loss = np.zeros(s.shape[0]), np.zeros(s.shape[0])
    total, visits = 0.0, 0
    for t in range(s.shape[1]):
        seen = n[:, t] > 0
        won, lost = s[:, t], n[:, t] - s[:, t]
        if t:
            counted = seen & (n[:, :t] > 0).any(axis=1)
            a, b = prior[0] + gain[counted], prior[1] + loss[counted]
            won_now, lost_now = won[counted], lost[counted]
            total += float(
                (
                    log_rising(a, won_now)
                    + log_rising(b, lost_now)
                    - log_rising(a + b, won_now + lost_now)
                    + log_rising(np.ones(len(a)) + won_now, lost_now)
                    - log_rising(np.ones(len(a)), lost_now)
                ).sum()
            )
            visits += int(counted.sum())
        gain = np.where(seen, discount * gain + won, gain)
        loss = np.where(seen, discount * loss + lost, loss)
    return total / visits if visits else 0.0


def fit_discount(log: Sequence[tuple[ArrayLike, ArrayLike]], prior: tuple[float, float] | None = None) -> float:
    """The discount rho in [0, 1] that best predicts each visit's outcomes one step ahead (`predictive_score`).

    Args:
        log: for each prompt its successes and its trials, visit by visit; prompts may differ in length.
        prior: Beta the prompts start from; by default `fit_prior` of the first visits.

    Golden-section search to 1e-3, kept inside [0, 1]. Without a prompt that was visited twice nothing is known: 1.0.

    Raises:
        RollwiseError: counts that are no counts.
    """
    s, n = pad(log)
    if ((n > 0).sum(axis=1) < 2).all():
        return 1.0
    start = fit_prior(s[:, 0], n[:, 0]) if prior is None else prior

    def score(rho: float) -> float:
        return predictive_score(s, n, rho, start)

    ratio = (np.sqrt(5.0) - 1) / 2
    low, high = 0.0, 1.0
    inner = [high - ratio * (high - low), low + ratio * (high - low)]
    found = [score(inner[0]), score(inner[1])]
    while high - low > 1e-3:
        if found[0] >= found[1]:
            high, inner[1], found[1] = inner[1], inner[0], found[0]
            inner[0] = high - ratio * (high - low)
            found[0] = score(inner[0])
        else:
            low, inner[0], found[0] = inner[0], inner[1], found[1]
            inner[1] = low + ratio * (high - low)
            found[1] = score(inner[1])
    middle = (low + high) / 2
    return max((0.0, 1.0, middle), key=score)


def pad(log: Sequence[tuple[ArrayLike, ArrayLike]]) -> tuple[IntArray, IntArray]:
    """Successes and trials (P, T) of a log, rows that are shorter filled with visits without trials."""
    rows = [check_counts(*row) for row in log]
    longest = max((len(s) for s, _ in rows), default=0)
    s, n = np.zeros((2, len(rows), longest), dtype=np.int64)
    for i, (won, tried) in enumerate(rows):
        s[i, : len(won)], n[i, : len(tried)] = won, tried
    return s, n


def check_counts(successes: ArrayLike, trials: ArrayLike) -> tuple[IntArray, IntArray]:
    """Both as int64 arrays of one shape.

    Raises:
        RollwiseError: shapes that differ, or counts that are not whole numbers with 0 <= s <= n.
    """
    s, n = np.asarray(successes), np.asarray(trials)
    if s.shape != n.shape:
        raise RollwiseError(f"counts: {s.shape} successes but {n.shape} trials; give one of each per group")
    whole = all(x.dtype.kind in "iu" or (x.dtype.kind == "f" and (np.mod(x, 1) == 0).all()) for x in (s, n))
    if s.size and not (whole and (s >= 0).all() and (s <= n).all()):
        raise RollwiseError("counts: whole numbers with 0 <= successes <= trials, such as 3 of 8")
    return s.astype(np.int64), n.astype(np.int64)


def _moments(s: IntArray, n: IntArray) -> FloatArray:
    """A starting point: mean and spread of the rates, pulled towards Beta(1,1)."""
    tried = n > 0
    # sorted, so that the order of groups does not show in the last bit
    rates = np.sort((s[tried] + 1) / (n[tried] + 2)) if tried.any() else np.array([0.5])
    centre = rates.mean()
    strength = np.clip(centre * (1 - centre) / (rates.var() + 1e-3) - 1, 0.2, 50.0)
    return np.array([centre, 1 - centre]) * strength


def _posterior(at: FloatArray, tails: tuple[FloatArray, ...], shrink: float) -> tuple[float, FloatArray, FloatArray]:
    """Value, slope [2] and curvature [2, 2] in (ln a, ln b); tails[.][j] counts groups with more than j events."""
    a, b = np.exp(at)
    terms = [(x + np.arange(len(tail)), tail) for x, tail in zip((a, b, a + b), tails, strict=True)]
    value = [float(tail @ np.log(base)) for base, tail in terms]
    first = [float(tail @ (1 / base)) for base, tail in terms]
    second = [float(tail @ (1 / base**2)) for base, tail in terms]
    pull = shrink / SPREAD**2
    slope = np.array([a * (first[0] - first[2]), b * (first[1] - first[2])])
    bend = np.array([[a * a * (second[2] - second[0]), a * b * second[2]], [0.0, b * b * (second[2] - second[1])]])
    bend[1, 0] = bend[0, 1]
    bend += np.diag(slope - pull)
    return value[0] + value[1] - value[2] - pull * float(at @ at) / 2, slope - pull * at, bend
