"""Scores of sampled completions: unbiased pass@k, majority votes, and bootstrap intervals over prompts.

A verdict is 1.0, 0.0 or NaN for unknown, which counts as no sample at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rollwise.types import FloatArray, RollwiseError

DRAWS = 2_000
"""Bootstrap samples of an interval."""

VOTES = 200
"""Random subsets of k samples that a majority of k < n is averaged over."""


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased estimate of the chance that one of k samples is right, of c right among n: 1 - C(n-c, k) / C(n, k).

    NaN for k > n (Chen et al. 2021, "Evaluating large language models trained on code").

    Raises:
        RollwiseError: counts that can't be, or k below 1.
    """
    if not 0 <= c <= n or k < 1:
        raise RollwiseError(f"pass@{k}: {c} right of {n} samples cannot be; give 0 <= right <= samples and k >= 1")
    if k > n:
        return float("nan")
    if n - c < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))


def majority_at_k(answers: Sequence[str | None], verdicts: Sequence[float], k: int, rng: np.random.Generator) -> float:
    """Chance that the most frequent answer among k of n samples is right; ties are broken at random.

    Samples without an answer or verdict don't vote; without any vote it is 0, NaN where all are unknown or k > n. For
    k < n the mean over VOTES subsets drawn by `rng`.
    """
    n = len(answers)
    if k > n or all(np.isnan(verdict) for verdict in verdicts):
        return float("nan")
    subsets = [np.arange(n)] if k == n else [rng.choice(n, k, replace=False) for _ in range(VOTES)]
    return float(np.mean([_vote(answers, verdicts, subset) for subset in subsets]))


def interval(values: FloatArray, seed: int = 0, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of `values` (P,) over prompts, those that are NaN left out.

    NaN, NaN for fewer than two values.
    """
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    # draws of 2,000 x P indices at a time would take gigabytes for large P
    means = np.array([known[rng.integers(0, len(known), len(known))].mean() for _ in range(DRAWS)])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _vote(answers: Sequence[str | None], verdicts: Sequence[float], subset: Sequence[int] | np.ndarray) -> float:
    votes: dict[str, list[float]] = {}
    for index in subset:
        answer = answers[index]
        if answer is not None and not np.isnan(verdicts[index]):
            votes.setdefault(answer, []).append(verdicts[index])
    if not votes:
        return 0.0
    most = max(len(given) for given in votes.values())
    return float(np.mean([np.mean(given) for given in votes.values() if len(given) == most]))
