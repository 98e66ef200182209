"""Chances of j successes in k rollouts of a prompt whose success probability is Beta distributed.

    P(j; k, alpha, beta) = C(k, j) B(alpha + j, beta + k - j) / B(alpha, beta)

Logarithms are sums of k ratios rather than differences of log-gamma: those lose nine digits at alpha = 1e6.
"""

from __future__ import annotations

import numpy as np

from rollwise.types import FloatArray, RollwiseError


def log_beta_binomial(k: int, alpha: float, beta: float) -> FloatArray:
    """[k+1] log P(j; k, alpha, beta) for j = 0..k, to about k * 1e-16.

    Raises:
        RollwiseError: k is negative, or alpha or beta is not a positive number.
    """
    if k < 0:
        raise RollwiseError(f"k {k} is negative: give 0 or more rollouts")
    if not (0 < alpha < np.inf and 0 < beta < np.inf):
        raise RollwiseError(f"Beta({alpha}, {beta}) is no belief: give two positive numbers such as 1.0 and 1.0")
    steps = np.arange(k)
    right, wrong = np.zeros(k + 1), np.zeros(k + 1)
    right[1:] = np.cumsum(np.log((alpha + steps) / (steps + 1.0)))
    wrong[1:] = np.cumsum(np.log((beta + steps) / (steps + 1.0)))
    whole = float(np.sum(np.log((alpha + beta + steps) / (steps + 1.0))))
    return right + wrong[::-1] - whole


def beta_binomial(k: int, alpha: float, beta: float) -> FloatArray:
    """[k+1] P(j; k, alpha, beta) for j = 0..k; arguments and errors as `log_beta_binomial`."""
    return np.exp(log_beta_binomial(k, alpha, beta))
