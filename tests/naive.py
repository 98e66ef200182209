"""Plain solvers that know no symmetry, no price and no kernel: what fast code is checked against.

h is a function of (s, f); priors are a pair per prompt. Chances of outcomes are products of posterior means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from math import comb

Pair = tuple[float, float]
Counts = tuple[int, ...]


def outcome_chance(j: int, k: int, a: float, b: float) -> float:
    """P(j of k succeed) for Beta(a, b), by multiplying one rollout after another."""
    chance = float(comb(k, j))
    for i in range(j):
        chance *= (a + i) / (a + b + i)
    for i in range(k - j):
        chance *= (b + i) / (a + b + j + i)
    return chance


def total(h: Callable[[int, int], float], kind: str, s: Counts, f: Counts) -> float:
    terms = [h(x, y) for x, y in zip(s, f)]
    return sum(terms) if kind == "sum" else min(terms)


def optimum(h, kind: str, priors: Sequence[Pair], budget: int, caps: Sequence[int] | None = None) -> float:
    """Value of the best one-at-a-time play."""
    size = len(priors)
    caps = [budget] * size if caps is None else caps

    @cache
    def value(s: Counts, f: Counts) -> float:
        if sum(s) + sum(f) == budget:
            return total(h, kind, s, f)
        best = -float("inf")
        for i in range(size):
            if s[i] + f[i] < caps[i]:
                a, b = priors[i][0] + s[i], priors[i][1] + f[i]
                up, down = s[:i] + (s[i] + 1,) + s[i + 1 :], f[:i] + (f[i] + 1,) + f[i + 1 :]
                best = max(best, (a * value(up, f) + b * value(s, down)) / (a + b))
        return best

    return value((0,) * size, (0,) * size)


def optimum_in_waves(h, kind: str, priors: Sequence[Pair], budget: int, waves: int) -> float:
    """Value of the best play that starts rollouts `waves` times, every split of every wave tried."""
    size = len(priors)

    @cache
    def value(s: Counts, f: Counts, left: int) -> float:
        rest = budget - sum(s) - sum(f)
        if rest == 0 or left == 0:
            return total(h, kind, s, f) if rest == 0 else -float("inf")
        splits = (k for k in product(range(rest + 1), repeat=size) if sum(k) <= rest)
        return max(expect(lambda x, y: value(x, y, left - 1), priors, s, f, k) for k in splits)

    return value((0,) * size, (0,) * size, waves)


def play(decide, h, kind: str, priors: Sequence[Pair], budget: int, waves: int) -> float:
    """Exact value of a rule, `decide(s, f, left, waves_left) -> counts`, every outcome of every wave enumerated."""

    @cache
    def value(s: Counts, f: Counts, left: int) -> float:
        rest = budget - sum(s) - sum(f)
        if rest == 0:
            return total(h, kind, s, f)
        k = tuple(int(x) for x in decide(s, f, rest, left))
        assert min(k) >= 0 and 0 < sum(k) <= rest and (left > 1 or sum(k) == rest)
        return expect(lambda x, y: value(x, y, left - 1), priors, s, f, k)

    start = (0,) * len(priors)
    return value(start, start, waves)


def expect(value, priors: Sequence[Pair], s: Counts, f: Counts, k: Counts) -> float:
    """Mean of `value(s, f)` once k more rollouts of each prompt are back."""
    mean = 0.0
    for js in product(*(range(n + 1) for n in k)):
        chance = 1.0
        for j, n, (a, b), x, y in zip(js, k, priors, s, f):
            chance *= outcome_chance(j, n, a + x, b + y)
        s_after = tuple(x + j for x, j in zip(s, js))
        mean += chance * value(s_after, tuple(y + n - j for y, n, j in zip(f, k, js)))
    return mean
