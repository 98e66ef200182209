"""What a budget spread evenly is worth: the yardstick every adaptive rule is held against."""

from __future__ import annotations

from math import exp, lgamma

import numpy as np

from rollwise.types import FloatArray
from rollwise.utilities import Kind


def beta_binomial(n: int, prior: tuple[float, float]) -> FloatArray:
    """[n+1] probability of s successes in n rollouts, C(n,s) B(a+s, b+n-s)/B(a, b)."""
    a, b = prior
    whole = lgamma(n + 1) + lgamma(a + b) - lgamma(a) - lgamma(b) - lgamma(a + b + n)
    return np.array(
        [exp(whole - lgamma(s + 1) - lgamma(n - s + 1) + lgamma(a + s) + lgamma(b + n - s)) for s in range(n + 1)]
    )


def uniform_value(terms: FloatArray, kind: Kind, prompts: int, budget: int, prior: tuple[float, float]) -> float:
    """Expected utility of floor(N/B) or one more rollout each, exact under the prior.

    A minimum over independent prompts is summed over its levels,
    E[min] = h_0 + sum_k (h_k - h_{k-1}) prod_i P(h_i >= h_k).

    Args:
        terms: [n+1, n+1] h over (s, f), n at least ceil(N/B).
    """
    base, extra = divmod(budget, prompts)
    groups = [(size, count) for size, count in ((base, prompts - extra), (base + 1, extra)) if count]
    outcomes = []
    for size, count in groups:
        s = np.arange(size + 1)
        outcomes.append((terms[s, size - s], beta_binomial(size, prior), count))
    if kind == "sum":
        return float(sum(count * np.dot(h, weight) for h, weight, count in outcomes))
    levels = np.unique(np.concatenate([h for h, _, _ in outcomes]))
    reached = np.ones(levels.size)
    for h, weight, count in outcomes:
        reached *= np.array([weight[h >= level].sum() for level in levels]) ** count
    return float(levels[0] + np.dot(np.diff(levels), reached[1:]))
