"""w(p) against closed forms, brute force and each other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from rollwise.advantages import GRPO, get_advantage
from rollwise.allocators import Uniform, get_allocator
from rollwise.effective_weight import exact_weight, fixed, measured_weight, until_success
from rollwise.pool import Pool
from rollwise.types import IntArray, RollwiseError, StepView

RATES = np.array([0.02, 0.1, 0.3, 0.5, 0.9])
Q = 1 - RATES


@pytest.mark.parametrize("n", [1, 2, 8, 33])
def test_uniform_with_raw_advantages_weighs_all_prompts_by_n_minus_one(n: int) -> None:
    assert exact_weight(n, RATES).weight == pytest.approx([n - 1] * 5)


def test_draw_until_the_first_success_matches_its_closed_form() -> None:
    found = exact_weight(until_success(), RATES, cap=1500)
    assert found.weight == pytest.approx((1 + RATES * np.log(RATES) / Q) / (RATES * Q), rel=1e-9)
    assert (found.low == found.weight).all() and (found.high == found.weight).all()


def test_a_baseline_fixed_before_the_rollout_weighs_by_the_expected_count() -> None:
    assert exact_weight(8, RATES, "predictive").weight == pytest.approx([8] * 5)
    assert exact_weight(until_success(), RATES, "predictive", cap=1500).weight == pytest.approx(1 / RATES)
    capped = exact_weight(until_success(), RATES, "predictive", cap=8).weight
    assert capped == pytest.approx((1 - Q**8) / RATES)


def test_dividing_by_the_population_deviation_gives_the_square_root_form() -> None:
    n = 8
    s = np.arange(n + 1)
    chance = np.array([[np.prod([(n - j) / (j + 1) for j in range(k)]) for k in s]]) * (
        RATES[:, None] ** s * Q[:, None] ** (n - s)
    )
    expected = chance @ np.sqrt(s * (n - s)) / (RATES * Q)
    assert exact_weight(n, RATES, GRPO(ddof=0, eps=1e-12)).weight == pytest.approx(expected, rel=1e-6)


def brute_force(rule: Any, cap: int, advantage: str, p: float) -> float:
    """Sum over every sequence of outcomes, order and all, of chance x advantage x mean score."""
    total = 0.0
    for outcomes in itertools.product([0, 1], repeat=cap):
        n = next((k for k in range(cap) if not rule(sum(outcomes[:k]), k - sum(outcomes[:k]))), cap)
        if any(outcomes[n:]):
            continue  # one representative of all continuations after stopping
        r = np.array(outcomes[:n], dtype=float)
        before = np.cumsum(r) - r
        beliefs = np.stack([1 + before, 1 + np.arange(n) - before], axis=1)
        found = get_advantage(advantage)(r, ["g"] * n, beliefs, np.arange(n))
        total += p ** r.sum() * (1 - p) ** (n - r.sum()) * (found * (r / p - (1 - r) / (1 - p))).sum()
    return total


@pytest.mark.parametrize("advantage", ["dr_grpo", "grpo", "predictive"])
@pytest.mark.parametrize(
    "rule",
    [fixed(4), until_success(), lambda s, f: (s < 2) & (f < 3), lambda s, f: (s == 0) | (f == 0)],
    ids=["fixed", "first success", "two or three", "until mixed"],
)
def test_enumeration_agrees_with_every_sequence_of_outcomes(rule: Any, advantage: str) -> None:
    found = exact_weight(rule, RATES, advantage, cap=7).weight
    assert found == pytest.approx([brute_force(rule, 7, advantage, p) for p in RATES], rel=1e-9)


@pytest.mark.parametrize("rates", [[0.0], [1.0], [0.5, 1.2]])
def test_rates_at_the_ends_are_refused(rates: list[float]) -> None:
    with pytest.raises(RollwiseError, match="^rates: "):
        exact_weight(8, rates)


def test_an_estimator_that_looks_beyond_the_group_is_left_to_monte_carlo() -> None:
    with pytest.raises(RollwiseError, match="use measured_weight"):
        exact_weight(8, RATES, "grpo_batch")


POOL = Pool.histogram([0.05, 0.3, 0.5, 0.9, 1.0], [0.3, 0.3, 0.25, 0.02, 0.13])


@pytest.mark.parametrize("advantage", ["dr_grpo", "predictive", "grpo"])
def test_monte_carlo_covers_what_is_known_exactly(advantage: str) -> None:
    exact = exact_weight(6, [0.05, 0.3, 0.5, 0.9], advantage).weight
    found = measured_weight(
        get_allocator("uniform"), POOL, prompts=8, per_prompt=6, draws=120, seed=1, advantage=advantage
    )
    assert found.rates.tolist() == [0.05, 0.3, 0.5, 0.9]
    error = (found.high - found.weight) / 1.96
    assert (np.abs(found.weight - exact) < 3.5 * error).all()
    assert (error < 0.15 * exact).all()


def test_adaroll_favours_the_prompts_uniform_leaves_dead_and_repeats_itself() -> None:
    rule = get_allocator("adaroll", utility="sum_variance")
    settings: dict[str, Any] = {"prompts": 4, "per_prompt": 8, "draws": 60, "n_min": 0, "fewest": 60}
    pool = Pool.histogram([0.05, 0.5], [0.5, 0.5])
    found = measured_weight(rule, pool, **settings)
    assert found.low[0] > found.high[1] and found.high[1] < 7
    assert (measured_weight(rule, pool, **settings).weight == found.weight).all()


class Counting(Uniform):
    """Uniform, and how many steps it was asked for."""

    steps = 0

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        self.steps += 1
        return super().next_wave(view, rng)


def test_rates_met_too_rarely_get_what_is_missing_and_negligible_ones_nothing() -> None:
    pool = Pool.histogram([0.1, 0.5, 0.7], [0.9998, 0.0, 0.0002])
    settings: dict[str, Any] = {"prompts": 4, "per_prompt": 4, "fewest": 10, "together": 2, "waves": 1}
    rule = Counting()
    # steps of .1 alone, 4 prompts each: 0.5 and 0.7 lack 10 each, two of them share a step
    assert measured_weight(rule, pool, draws=5, **settings).rates.tolist() == [0.1, 0.5, 0.7]
    assert rule.steps == 5 + 10
    rule = Counting()
    # 8 of 10 are met by 2 steps, so one step more has the missing two
    assert measured_weight(rule, pool, draws=2, least=0.001, **settings).rates.tolist() == [0.1]
    assert rule.steps == 2 + 1


def test_a_pool_without_inner_rates_is_refused() -> None:
    with pytest.raises(RollwiseError, match="^pool: "):
        measured_weight(get_allocator("uniform"), Pool.histogram([0.0, 1.0], [1, 1]), prompts=4, per_prompt=4)
