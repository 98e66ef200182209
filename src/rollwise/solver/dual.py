"""The price of a rollout: minimising a convex function of one number that comes with its slope.

    D(lam) = sum_i W_i(lam) + lam * N,     D'(lam) = N - expected spend at lam

D is an upper bound at *every* lam, so a search that stops early is only less tight, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

Evaluate = Callable[[float], tuple[float, float]]
"""lam -> (sum of W_i at lam, expected spend of the play that attains it)."""


@dataclass(frozen=True)
class Price:
    """Where the search ended: `low` still spends more than the budget, `high` at most the budget.

    They are equal where one end of the range was reached. `value` is the smallest D seen, at `price` with expected spend
    `spend`; `floor` the largest number known to be at most min D, so a longer search could gain `value - floor`.
    """

    value: float
    price: float
    spend: float
    low: float
    high: float
    floor: float


def find_price(
    evaluate: Evaluate,
    budget: float,
    lowest: float,
    highest: float,
    *,
    tolerance: float = 1e-10,
    slack: float = 0.0,
    tries: int = 80,
    start: float = 0.0,
    factor: float = 4.0,
) -> Price:
    """Minimise D over [lowest, highest]; spend must not rise with the price.

    A positive `start` is a guess: the interval is then opened from there, by `factor`, its square, that one's square ...

    Tangents at both ends meet at the next try; every third try halves the interval instead, which bounds their number.
    The search ends once `tolerance` (relative to D) or `slack` (of the budget unspent or overspent) is reached.
    """

    def touch(lam: float) -> _Tangent:
        worth, spend = evaluate(lam)
        return _Tangent(worth + lam * budget, lam, budget - spend)

    def close(floor: float) -> Price:
        return Price(best.value, best.lam, budget - best.slope, low.lam, high.lam, min(floor, best.value))

    best = low = high = touch(min(max(start, lowest), highest))
    while low.slope < 0 and high.slope < 0 and high.lam < highest:
        low, high = high, touch(min(factor * high.lam, highest) if high.lam > 0 else highest)
        factor *= factor
    while low.slope >= 0 and low.lam > lowest:
        high, low = low, touch(max(low.lam / factor, lowest) if low.lam > 0 and lowest >= 0 else lowest)
        factor *= factor
    best = min(low, high)
    if low.slope >= 0 or high.slope <= 0:
        return close(best.value)
    floor = -float("inf")
    for count in range(tries):
        meeting = (low.value - high.value + high.slope * high.lam - low.slope * low.lam) / (high.slope - low.slope)
        floor = max(floor, min(best.value, low.value + low.slope * (meeting - low.lam)))
        if best.value - floor <= tolerance * max(1.0, abs(best.value)) or abs(best.slope) <= slack:
            break
        # Prices worth looking at span decades, so positive ones are halved by their ratio.
        half = (low.lam * high.lam) ** 0.5 if low.lam > 0 else 0.5 * (low.lam + high.lam)
        middle = half if count % 3 == 2 or not low.lam < meeting < high.lam else meeting
        if not low.lam < middle < high.lam:
            break
        found = touch(middle)
        best = min(best, found)
        if found.slope < 0:
            low = found
        else:
            high = found
            if found.slope == 0:
                return close(found.value)
    return close(floor)


class _Tangent(NamedTuple):
    """D and its slope at one price; the least D comes first."""

    value: float
    lam: float
    slope: float
