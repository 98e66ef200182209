"""HORA: marginal hit utility, the published vectors, the optimum by brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from test_adaroll import view_of

from rollwise.allocators.hora import HitGains, Hora

RNG = np.random.default_rng(0)


def decide(s: list[int], extras: int, n: int = 4, waves: int = 1, **settings: object) -> np.ndarray:
    budget = n * len(s) + extras
    view = view_of(s, [n - k for k in s], budget, waves_left=waves)
    return Hora(first=n, **settings).next_wave(view, RNG)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("s", "gains"), [(4, [0.8333, 0.1190, 0.0298]), (2, [0.5, 0.2143, 0.1071]), (0, [0.1667, 0.1190, 0.0893])]
)
def test_gains_of_the_next_rollouts(s: int, gains: list[float]) -> None:
    found = HitGains(1.0 + s, 5.0 - s)
    assert [found(k) for k in range(3)] == pytest.approx(gains, abs=5e-5)


def test_gains_are_expectations_under_the_posterior() -> None:
    p = np.random.default_rng(1).beta(2.5, 1.5, 400_000)
    found = HitGains(2.5, 1.5)
    for k in range(5):
        assert found(k) == pytest.approx((p * (1 - p) ** k).mean(), abs=2e-3)


@pytest.mark.parametrize(
    ("extras", "mass_aware", "counts"),
    [
        (20, False, [6, 5, 4, 3, 2]),
        (40, False, [15, 10, 7, 5, 3]),
        (20, True, [10, 6, 3, 1, 0]),
        (40, True, [21, 11, 6, 2, 0]),
    ],
)
def test_extras_after_four_rollouts(extras: int, mass_aware: bool, counts: list[int]) -> None:
    assert decide([0, 1, 2, 3, 4], extras, mass_aware=mass_aware).tolist() == counts


@pytest.mark.parametrize("mass_aware", [False, True])
def test_no_allocation_gains_more(mass_aware: bool) -> None:
    s, extras = [0, 1, 3], 7
    gains = [HitGains(1.0 + k, 5.0 - k) for k in s]
    offset = 4 if mass_aware else 0

    def utility(counts: tuple[int, ...]) -> float:
        return sum(gain(offset + k) for gain, n in zip(gains, counts, strict=True) for k in range(n))

    best = max(utility(counts) for counts in product(range(extras + 1), repeat=3) if sum(counts) == extras)
    assert utility(tuple(decide(s, extras, mass_aware=mass_aware))) == pytest.approx(best, abs=1e-12)


def test_everybody_opens_alike_and_rounds_split_the_rest() -> None:
    fresh = view_of([0] * 3, [0] * 3, 24)
    assert Hora().next_wave(fresh, RNG).tolist() == [4, 4, 4]
    assert Hora(first=2).next_wave(fresh, RNG).tolist() == [2, 2, 2]
    assert Hora(first=2).next_wave(view_of([0] * 3, [0] * 3, 24, n_min=3), RNG).tolist() == [3, 3, 3]
    assert decide([0, 1, 2], 12, rounds=3).sum() == 4
    later = view_of([0, 1, 2], [5, 4, 3], 24)
    assert Hora(first=4, rounds=3).next_wave(later, RNG).sum() == 4


def test_the_opening_takes_at_most_half_of_a_small_budget() -> None:
    assert Hora().next_wave(view_of([0] * 4, [0] * 4, 16, n_min=2), RNG).tolist() == [2, 2, 2, 2]


def test_priors_per_prompt_move_the_rest() -> None:
    view = view_of([1, 1], [3, 3], 16)
    tilted = view_of([1, 1], [3, 3], 16)
    tilted.prior_b[1] = 30.0
    assert Hora(first=4).next_wave(view, RNG).tolist() == [4, 4]
    lean = Hora(first=4).next_wave(tilted, RNG)
    assert lean[0] != 4 and lean.sum() == 8
