"""Neyman allocation: the square-root rule where rates are known, less variance than uniform where they are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_adaroll import view_of

from rollwise.allocators import get_allocator
from rollwise.allocators.neyman import Neyman
from rollwise.types import RollwiseError

RNG = np.random.default_rng(0)


def certain(rates, budget, weights=None, **limits):
    """A step whose beliefs are as good as knowledge."""
    rates = np.asarray(rates, dtype=float)
    view = view_of([0] * rates.size, [0] * rates.size, budget, **limits)
    view = replace(view, prior_a=1e5 * rates, prior_b=1e5 * (1 - rates))
    return view if weights is None else replace(view, objective_weights=np.asarray(weights, dtype=float))


def test_known_rates_are_served_by_the_square_root_rule():
    """n - 1 in proportion to w sqrt(p q): within one rollout of the real-valued optimum."""
    rates, weights = np.array([0.5, 0.1, 0.02, 0.9, 0.3]), np.array([1.0, 2.0, 1.0, 0.5, 1.0])
    wave = Neyman().next_wave(certain(rates, 80, weights), RNG)
    share = weights * np.sqrt(rates * (1 - rates))
    assert wave.sum() == 80
    np.testing.assert_allclose(wave - 1, 75 * share / share.sum(), atol=1.0)
    own = Neyman(least=1).next_wave(certain(rates, 80, weights), RNG)
    np.testing.assert_allclose(own, 80 * share / share.sum(), atol=1.0)


def test_waves_learn_the_rates_and_lower_the_variance():
    """beyond.md 8: from beliefs under Beta(.3, 1.5) and eight each, 0.854 of uniform's variance (one at a time)."""
    rng, size, per_prompt = np.random.default_rng(1), 64, 8
    ratio = []
    for _ in range(20):
        p = rng.beta(0.3, 1.5, size)
        counts = np.zeros((2, size), dtype=int)
        for waves_left in (4, 3, 2, 1):
            view = view_of(*counts, size * per_prompt, prior=(0.3, 1.5), waves_left=waves_left)
            wave = Neyman(least=1).next_wave(view, RNG)
            hits = rng.binomial(wave, p)
            counts += np.array([hits, wave - hits])
        assert counts.sum() == size * per_prompt and counts.sum(axis=0).min() >= 1
        ratio.append((p * (1 - p) / counts.sum(axis=0)).sum() / (p * (1 - p) / per_prompt).sum())
    assert 0.8 < np.mean(ratio) < 0.93


def test_weights_of_the_objective_move_rollouts():
    plain = Neyman().next_wave(certain([0.5] * 4, 40), RNG)
    np.testing.assert_array_equal(plain, [10] * 4)
    tilted = Neyman().next_wave(certain([0.5] * 4, 40, [3.0, 1.0, 1.0, 0.0]), RNG)
    assert tilted[0] > 2 * tilted[1] and abs(tilted[1] - tilted[2]) <= 1 and tilted[3] == 0


def test_it_is_found_by_name_and_keeps_the_limits():
    rule = get_allocator("neyman", utility="sum_variance")
    assert rule.name == "neyman" and not rule.saves and rule.metrics() == {}
    wave = rule.next_wave(certain([0.5, 0.01, 0.2], 12, n_min=2, n_max=5, waves_left=2), RNG)
    assert (wave >= 2).all() and (wave <= 5).all()
    assert not rule.next_wave(view_of([2, 1], [0, 1], 4), RNG).any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Neyman(least=3), "least 3"),
        (lambda: Neyman().next_wave(certain([0.5, 0.5], 9, n_max=4), RNG), "n_max"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(RollwiseError, match=words):
        call()


def test_many_beliefs_are_planned_in_parts_and_alike(monkeypatch):
    """A hundred thousand tables at once would take gigabytes; how many are made at a time decides nothing."""
    rng = np.random.default_rng(2)
    view = replace(view_of([0] * 90, [0] * 90, 720), prior_a=rng.uniform(0.3, 3, 90), prior_b=rng.uniform(0.3, 3, 90))
    steps = [replace(view, waves_left=waves) for waves in (3, 1)]
    whole = [Neyman().next_wave(step, RNG) for step in steps]
    monkeypatch.setattr("rollwise.solver.prompts.MOST_CELLS", 20_000)
    for step, wave in zip(steps, whole, strict=True):
        np.testing.assert_array_equal(Neyman().next_wave(step, RNG), wave)
