"""CERO: its dual algorithm against the numbers it was specified with, its acceptance run, and its selector."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.allocators import Uniform
from rollwise.beliefs import FixedPrior
from rollwise.selectors import get_selector
from rollwise.selectors.cero import CERO
from rollwise.selectors.dual import DualPacing, prompt_values, total_utility
from rollwise.selectors.offline import fill_greedily, fill_water
from rollwise.step import Step
from rollwise.types import IntArray, RollwiseError, StepRecord

M, K, BUDGET, CAPACITY, UNIT = 8_960, 500, 64_000, 132, 4
NONE: IntArray = np.zeros(0, dtype=np.int64)


def test_first_round_moves_prices_by_the_published_amounts() -> None:
    pacing = DualPacing(M, K, BUDGET, CAPACITY)
    assert pacing.theta == pytest.approx(np.full(M, 2 / 3))
    assert pacing.responses() == pytest.approx(np.zeros(M))
    served = pacing.propose() > 0
    assert served.sum() == 66
    pacing.learn(NONE, NONE, NONE, 132)
    assert pacing.theta[served] == pytest.approx(np.full(66, 0.621945), abs=5e-7)
    assert (pacing.theta[~served] == 2 / 3).all()
    assert pacing.nu == pytest.approx(0.501398, abs=5e-7)


def test_best_response_after_four_of_eight() -> None:
    pacing = DualPacing(M, K, BUDGET, CAPACITY)
    pacing.beliefs[0] = (5.0, 5.0)
    pacing.theta[0] = 0.621945
    assert prompt_values(pacing.beliefs)[0] == pytest.approx(0.227273, abs=5e-7)
    assert pacing.responses()[0] == pytest.approx(2.98252, abs=5e-6)
    assert pacing.responses()[0] / K == pytest.approx(0.005965, abs=5e-7)


def test_best_response_is_the_maximiser_of_utility_less_price() -> None:
    pacing = DualPacing(5, 10, 40, 8)
    pacing.beliefs = np.array([[1.0, 1.0], [5.0, 5.0], [1.0, 30.0], [40.0, 1.0], [3.0, 2.0]])
    pacing.theta = np.array([0.2, 0.9, 0.01, 0.5, 0.0])
    ratio, z = 40 / 5, np.linspace(0, 20, 200_001)
    for q, theta, found in zip(prompt_values(pacing.beliefs), pacing.theta, pacing.responses(), strict=True):
        best = z[np.argmax(-np.exp(-4 * q * z / ratio) - theta / ratio * z)]
        assert found == pytest.approx(best, abs=2e-4)


def test_published_run_is_reproduced() -> None:
    """486 or 487 rounds with an update, 3 to 5 visits of every prompt, 1,920 responses above the even pace at most."""
    rng = np.random.default_rng(0)
    rates = rng.beta(0.4, 0.4, M)
    pacing = DualPacing(M, K, BUDGET, CAPACITY)
    visits, active, ahead = np.zeros(M, dtype=np.int64), 0, 0.0
    while not pacing.done:
        units = pacing.propose()
        places = np.flatnonzero(units)
        successes = rng.binomial(UNIT * units[places], rates[places])
        pacing.learn(places, successes, UNIT * units[places] - successes, int(units.sum()))
        visits[places] += 1
        active += len(places) > 0
        ahead = max(ahead, pacing.spent - pacing.round * BUDGET / K)
    assert active in (486, 487)
    assert set(visits.tolist()) == {3, 4, 5}
    assert UNIT * ahead == 1_920
    assert pacing.spent == BUDGET


def test_a_round_ends_where_the_budget_does() -> None:
    pacing = DualPacing(10, 3, 5, 6)
    pacing.nu = 0.0
    assert pacing.propose().sum() == 5
    pacing.learn(NONE, NONE, NONE, 5)
    assert pacing.done


def test_the_last_prompt_of_a_round_may_get_a_remainder() -> None:
    pacing = DualPacing(10, 3, 30, 7, per_prompt=2)
    assert sorted(pacing.propose().tolist(), reverse=True)[:5] == [2, 2, 2, 1, 0]


def test_old_evidence_fades_by_the_discount() -> None:
    pacing = DualPacing(2, 5, 10, 2, discount=0.5)
    for _ in range(2):
        pacing.learn(np.array([0]), np.array([4]), np.array([2]), 2)
    assert pacing.beliefs.tolist() == [[1 + 2 + 4, 1 + 1 + 2], [1.0, 1.0]]


def test_greedy_units_are_the_best_of_all() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        values, budget, most = rng.uniform(0, 0.25, 3), int(rng.integers(1, 7)), int(rng.integers(1, 4))
        ratio = budget / 3
        scores = {
            z: -np.exp(-4 * values * np.array(z) / ratio).sum()
            for z in np.ndindex(most + 1, most + 1, most + 1)
            if sum(z) <= budget
        }
        found = fill_greedily(values, budget, most, ratio)
        assert scores[tuple(found.tolist())] == pytest.approx(max(scores.values()), abs=1e-12)


def test_water_level_spends_the_budget_and_equalises_slopes() -> None:
    values = np.array([0.25, 0.2, 0.1, 0.02, 0.0])
    z = fill_water(values, 30.0, 12.0, 6.0)
    assert z.sum() == pytest.approx(30.0)
    c = 4 * values / 6.0
    inner = (z > 1e-9) & (z < 12 - 1e-9)
    slopes = (c * np.exp(-c * z))[inner]
    assert np.ptp(slopes) < 1e-9
    assert z[4] == 0


def played(selector: CERO, places: IntArray, rates: np.ndarray, index: int) -> StepRecord:
    step = Step([f"q{place}" for place in places], Uniform(), 8 * len(places), rng=np.random.default_rng(index))
    coins = np.random.default_rng([index, 5])
    while wave := step.next_wave():
        step.observe(*(r.result(bool(coins.random() < rates[int(r.prompt_id[1:])])) for r in wave.rollouts))
    return step.close()


def run(selector: CERO, rounds: int, size: int = 40, n: int = 6, start: int = 0) -> list[list[int]]:
    pool = [f"q{k}" for k in range(size)]
    rates = np.linspace(0, 1, size)
    chosen = []
    for index in range(start, start + rounds):
        places = selector.select(pool, FixedPrior(), n, np.random.default_rng(index))
        chosen.append(places.tolist())
        if len(places):
            selector.observe(played(selector, places, rates, index))
    return chosen


def test_unseen_prompts_come_first_and_rounds_may_be_short() -> None:
    selector = CERO(steps=40)
    chosen = run(selector, selector.rounds)
    first = [place for places in chosen[:6] for place in places]
    assert len(set(first)) == 36, "the first pass visits nobody twice"
    assert 38 * 6 <= sum(map(len, chosen)) <= 40 * 6, "what is left after the last round stays unspent"
    assert min(map(len, chosen)) < 6, "the price leaves some rounds short or idle"
    assert selector.done
    assert selector.select([f"q{k}" for k in range(40)], FixedPrior(), 6, np.random.default_rng(0)).size == 0


def test_middling_prompts_are_visited_more_often() -> None:
    selector = CERO(steps=60)
    visits = np.bincount(np.concatenate(run(selector, selector.rounds)).astype(int), minlength=40)
    assert visits[14:26].mean() > 1.2 * visits[[0, 1, 2, 37, 38, 39]].mean()


def test_selections_go_on_from_a_saved_state() -> None:
    whole = run(CERO(steps=20), 15)
    half = CERO(steps=20)
    assert run(half, 7) == whole[:7]
    other = CERO(steps=20)
    other.load_state_dict(half.state_dict())
    assert run(other, 8, start=7) == whole[7:]


def test_refuses_what_it_cannot_plan() -> None:
    with pytest.raises(RollwiseError, match="steps"):
        get_selector("cero")
    with pytest.raises(RollwiseError, match="pace"):
        CERO(steps=10, pace=1.5)
    selector = CERO(steps=5)
    run(selector, 1)
    with pytest.raises(RollwiseError, match="40 prompts and now has 30"):
        selector.select([str(k) for k in range(30)], FixedPrior(), 6, np.random.default_rng(0))


def test_regret_against_the_offline_optimum_falls_like_one_over_the_root_of_rounds() -> None:
    """Static rates, Beta(.4, .4), M = 100, C = 20: regret per prompt times sqrt(K) stays level from K = 100 to 1,600."""
    horizons = np.array([100, 200, 400, 800, 1_600])
    found = np.array([np.mean([regret_per_prompt(int(rounds), seed) for seed in range(4)]) for rounds in horizons])
    slope = np.polyfit(np.log(horizons), np.log(found), 1)[0]
    assert -0.65 < slope < -0.4
    assert found[-1] < found[0] / 3


def regret_per_prompt(rounds: int, seed: int, prompts: int = 100, capacity: int = 20) -> float:
    rng = np.random.default_rng(seed)
    rates = rng.beta(0.4, 0.4, prompts)
    budget = round(64 / 66 * rounds * capacity)
    pacing = DualPacing(prompts, rounds, budget, capacity, seed=seed)
    units = np.zeros(prompts, dtype=np.int64)
    while not pacing.done:
        given = pacing.propose()
        places = np.flatnonzero(given)
        successes = rng.binomial(UNIT * given[places], rates[places])
        pacing.learn(places, successes, UNIT * given[places] - successes, int(given.sum()))
        units += given
    values, ratio = rates * (1 - rates), budget / prompts
    best = fill_water(values, budget, 2 * rounds, ratio)
    return (total_utility(values, best, ratio) - total_utility(values, units, ratio)) / prompts
