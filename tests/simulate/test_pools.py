"""Pools: closed forms of group shares, posteriors of records, and the words that name a pool."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rollwise.simulate.pools import EASY, HARD, BetaPool, parse_pool
from rollwise.types import RollwiseError


@pytest.mark.parametrize("n", [1, 2, 8, 32])
def test_flat_pool_has_two_of_n_plus_one_dead_groups(n):
    assert parse_pool("beta:1,1").dead_share(n) == pytest.approx(2 / (n + 1))
    assert parse_pool("beta:1,1").unsolved_share(n) == pytest.approx(1 / (n + 1))


@pytest.mark.parametrize(("name", "rates"), [("hard", HARD), ("easy", EASY)])
def test_pool_of_rates_has_the_mean_of_their_dead_groups(name, rates):
    p = np.array(rates)
    assert len(p) == 16
    assert parse_pool(name).dead_share(8) == pytest.approx((p**8 + (1 - p) ** 8).mean())
    assert parse_pool(name).unsolved_share(8) == pytest.approx(((1 - p) ** 8).mean())


def test_uniform_column_of_the_trade_off_table():
    # systems.md 1.7: dead and unsolved prompts of uniform 8
    assert parse_pool("hard").dead_share(8) == pytest.approx(0.454, abs=5e-4)
    assert parse_pool("hard").unsolved_share(8) == pytest.approx(0.317, abs=5e-4)
    assert parse_pool("easy").dead_share(8) == pytest.approx(0.416, abs=2e-3)
    assert parse_pool("easy").unsolved_share(8) == pytest.approx(0.055, abs=1e-3)


def test_counts_give_posteriors_so_that_no_success_in_eight_is_not_hopeless():
    pool = BetaPool.from_counts(np.array([0, 0, 4, 8]), np.array([8, 8, 8, 8]))
    rates = pool.draw(4000, np.random.default_rng(0))
    assert 0 < rates.min() < rates.max() < 1
    assert rates.mean() == pytest.approx(pool.mean, abs=0.03)
    assert np.mean((1 - rates) ** 8) == pytest.approx(pool.unsolved_share(8), abs=0.03)


def test_many_trials_are_resolved(tmp_path):
    record = tmp_path / "counts.jsonl"
    record.write_text(json.dumps({"runs": {"small": [12, 100_000], "large": [50_000, 100_000]}}) + "\n")
    assert parse_pool(f"{record}#small").mean == pytest.approx(1.2e-4, rel=0.1)
    assert parse_pool(f"{record}#large").mean == pytest.approx(0.5, rel=0.01)


def test_shipped_training_log_starts_hard_and_ends_easier():
    # the data set's own account: 36 % all wrong at the first visit, mean 0.335 over the whole file
    first, later = parse_pool("rlvr"), parse_pool("rlvr#40")
    assert first.mean == pytest.approx(0.335, abs=0.03)
    assert later.mean - first.mean > 0.08


@pytest.mark.parametrize(
    ("word", "part"),
    [
        ("hrad", "hard"),
        ("", "beta:1,1"),
        ("beta:1", "two positive numbers"),
        ("beta:-1,2", "two positive numbers"),
        ("missing.jsonl", "No such file"),
        ("rlvr#99", "visit"),
        ("rlvr#first", "whole number"),
    ],
)
def test_a_word_that_is_no_pool_is_one_clear_line(word, part):
    with pytest.raises(RollwiseError, match=part) as error:
        parse_pool(word)
    assert "\n" not in str(error.value)
