"""Populations from Betas, histograms and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollwise.pool import Pool
from rollwise.types import RollwiseError


@pytest.mark.parametrize("n", [1, 2, 4, 8, 32])
def test_dead_and_unsolved_shares_of_a_flat_pool_are_the_closed_forms(n: int) -> None:
    pool = Pool.beta(1, 1)
    assert pool.dead_share(n) == pytest.approx(2 / (n + 1))
    assert pool.unsolved_share(n) == pytest.approx(1 / (n + 1))
    assert pool.mean == pytest.approx(0.5)


def test_a_histogram_is_normalised_and_used_as_it_stands() -> None:
    pool = Pool.histogram([0, 0.5, 1], [3, 6, 1])
    assert pool.shares.tolist() == pytest.approx([0.3, 0.6, 0.1])
    assert pool.dead_share(4) == pytest.approx(0.3 + 0.6 * 2 * 0.5**4 + 0.1)
    assert pool.unsolved_share(4) == pytest.approx(0.3 + 0.6 * 0.5**4)


@pytest.mark.parametrize(
    ("rates", "shares"),
    [([], []), ([0.5], [1, 2]), ([1.2], [1]), ([-0.1], [1]), ([np.nan], [1]), ([0.5], [0]), ([0.5], [-1])],
)
def test_what_is_no_histogram_is_refused(rates: Any, shares: Any) -> None:
    with pytest.raises(RollwiseError, match="^rates: "):
        Pool.histogram(rates, shares)


def test_counts_give_back_the_population_and_not_their_own_noise() -> None:
    rng = np.random.default_rng(0)
    rates = rng.beta(0.6, 1.2, size=4000)
    s = rng.binomial(8, rates)
    pool = Pool.from_counts(s, np.full(4000, 8))
    assert pool.prior == pytest.approx((0.6, 1.2), rel=0.1)
    for n in (2, 8, 32):
        true = float(np.mean(rates**n + (1 - rates) ** n))
        assert pool.dead_share(n) == pytest.approx(true, abs=0.015)
    raw = np.mean((s / 8) ** 32 + (1 - s / 8) ** 32)
    assert raw > np.mean(rates**32 + (1 - rates) ** 32) + 0.05


def test_many_trials_pin_the_rates_down() -> None:
    pool = Pool.from_counts([5_000, 100, 100], [10_000, 10_000, 10_000])
    assert pool.mean == pytest.approx((0.5 + 0.01 + 0.01) / 3, abs=0.01)
    assert pool.shares[(pool.rates > 0.4) & (pool.rates < 0.6)].sum() == pytest.approx(1 / 3, abs=1e-6)


def test_coarse_bins_keep_mass_and_mean() -> None:
    pool = Pool.beta(0.3, 1.5)
    coarse = pool.coarse([0, 0.1, 0.5, 1])
    assert len(coarse.rates) == 3 and coarse.shares.sum() == pytest.approx(1)
    assert coarse.mean == pytest.approx(pool.mean)
    assert ((coarse.rates > [0, 0.1, 0.5]) & (coarse.rates < [0.1, 0.5, 1])).all()
    assert Pool.histogram([0.0, 1.0], [1, 1]).coarse([0, 0.5, 1]).rates.tolist() == [0, 1]


def test_drawing_follows_the_shares() -> None:
    drawn = Pool.histogram([0.2, 0.9], [1, 3]).draw(20_000, np.random.default_rng(0))
    assert set(drawn) == {0.2, 0.9} and (drawn == 0.9).mean() == pytest.approx(0.75, abs=0.015)
