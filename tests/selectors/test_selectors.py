"""Passes, MoPPS, GRESO and resampling: who is chosen, and that choices go on from a saved state."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rollwise.allocators import Uniform
from rollwise.beliefs import FixedPrior
from rollwise.selectors import SELECTORS, Selector, get_selector
from rollwise.selectors.greso import GRESO
from rollwise.selectors.mopps import MoPPS
from rollwise.selectors.passes import Passes
from rollwise.selectors.resampling import Resampling
from rollwise.step import Step
from rollwise.testing import check_selector
from rollwise.types import IntArray, RollwiseError, StepRecord

POOL = [f"q{place}" for place in range(24)]
RATES = np.linspace(0.0, 1.0, len(POOL))


def play(places: IntArray, index: int, rates: np.ndarray = RATES, copies: bool = False, group: int = 4) -> StepRecord:
    step = Step(
        [POOL[place] for place in places],
        Uniform(),
        group * len(places),
        rng=np.random.default_rng(index),
        index=index,
        copies=copies,
    )
    coins = np.random.default_rng([index, 7])
    while wave := step.next_wave():
        step.observe(
            *(
                r.result(bool(coins.random() < rates[int(r.prompt_id[1:])]), tokens=2, logprob=-0.4)
                for r in wave.rollouts
            )
        )
    return step.close()


def run(selector: Selector, steps: int, n: int = 6, start: int = 0, rates: np.ndarray = RATES) -> list[list[int]]:
    chosen = []
    for index in range(start, start + steps):
        places = selector.select(POOL, FixedPrior(), n, np.random.default_rng(index))
        chosen.append(places.tolist())
        if len(places):
            selector.observe(play(places, index, rates, selector.copies))
    return chosen


@pytest.mark.parametrize("name", SELECTORS)
def test_choices_go_on_from_a_saved_state(name: str) -> None:
    whole = run(get_selector(name, steps=12, seed=3), 12)
    half = get_selector(name, steps=12, seed=3)
    assert run(half, 5) == whole[:5]
    other = get_selector(name, steps=12, seed=3)
    other.load_state_dict(half.state_dict())
    assert run(other, 7, start=5) == whole[5:]


@pytest.mark.parametrize("name", SELECTORS)
def test_every_selector_keeps_the_contract(name: str) -> None:
    check_selector(get_selector(name, steps=12))


@pytest.mark.parametrize("name", SELECTORS)
def test_choices_are_places_of_the_pool_and_at_most_what_was_asked(name: str) -> None:
    selector = get_selector(name, steps=9)
    for places in run(selector, 9, n=5):
        assert len(places) <= 5
        assert all(0 <= place < len(POOL) for place in places)
        assert selector.copies or len(set(places)) == len(places)


@pytest.mark.parametrize("name", SELECTORS)
def test_a_step_larger_than_the_data_is_refused(name: str) -> None:
    with pytest.raises(RollwiseError, match="takes 25 and the data set has 24"):
        get_selector(name, steps=3).select(POOL, FixedPrior(), 25, np.random.default_rng(0))


def test_passes_visit_everyone_once_per_pass() -> None:
    chosen = run(Passes(), 8, n=6)
    flat = [place for places in chosen for place in places]
    assert sorted(flat[:24]) == list(range(24))
    assert sorted(flat[24:48]) == list(range(24))
    assert flat[:24] != flat[24:48]


def test_mopps_takes_prompts_near_one_half() -> None:
    selector = MoPPS()
    run(selector, 40)
    late = np.concatenate(run(selector, 20, start=40))
    rates = RATES[late.astype(int)]
    assert np.abs(rates - 0.5).mean() < 0.15
    assert np.abs(RATES - 0.5).mean() > 0.24


def test_mopps_evidence_fades_towards_the_prior() -> None:
    selector = MoPPS(discount=0.5)
    step = play(np.array([23]), 0)
    selector.observe(step)
    selector.observe(step)
    assert selector.store.prior(["q23"]).tolist() == [[1 + 0.5 * 4 + 4, 1.0]]


def test_mopps_chooses_among_candidates_of_the_passes() -> None:
    selector = MoPPS(candidates=2)
    chosen = selector.select(POOL, FixedPrior(), 6, np.random.default_rng(0))
    assert set(chosen.tolist()) <= set(Passes().draw(24, 12).tolist())


def test_greso_skips_by_the_power_of_dead_visits() -> None:
    selector = GRESO()
    for index in range(3):
        selector.observe(play(np.array([0, 23]), index))
    assert selector.chance("q0") == pytest.approx(0.5**3)
    assert selector.chance("q23") == pytest.approx(0.5**3)
    assert selector.chance("q5") == 1.0
    for index in range(10):
        selector.observe(play(np.array([0]), index))
    assert selector.chance("q0") == 0.01
    alive = np.full(24, 0.5)
    record = next(r for k in range(50) if 0 < (r := play(np.array([0]), k, alive)).successes[0] < 4)
    selector.observe(record)
    assert selector.chance("q0") == 1.0


def test_greso_moves_its_probabilities_in_the_second_pass_only() -> None:
    selector = GRESO()
    run(selector, 4, rates=np.ones(24))
    assert selector.explore == {"easy": 0.5, "hard": 0.5}
    selector.select(POOL, FixedPrior(), 6, np.random.default_rng(9))
    selector.observe(play(np.arange(6), 9, np.ones(24)))
    assert selector.explore == pytest.approx({"easy": 0.49, "hard": 0.51})


def test_greso_visits_dead_prompts_less() -> None:
    rates = np.where(np.arange(24) < 12, 0.0, 0.5)
    visits = np.bincount(np.concatenate(run(GRESO(), 60, rates=rates)).astype(int), minlength=24)
    assert visits[:12].mean() < 0.6 * visits[12:].mean()
    assert visits[:12].min() > 0


def test_resampling_repeats_the_best_quarter_as_groups_of_their_own() -> None:
    selector = Resampling()
    first = selector.select(POOL, FixedPrior(), 8, np.random.default_rng(0))
    record = play(first, 0)
    selector.observe(record)
    second = selector.select(POOL, FixedPrior(), 8, np.random.default_rng(1))
    p = record.successes / record.counts
    best = np.sort(np.argsort(-(p * (1 - p)), kind="stable")[:2])
    assert second.tolist() == np.repeat(first[best], 4).tolist()
    again = play(second, 1, copies=True)
    assert len({r.group_id for r in again.rollouts}) == 8
    assert again.counts.tolist() == [4] * 8
    selector.observe(again)
    third = selector.select(POOL, FixedPrior(), 8, np.random.default_rng(2))
    assert not set(third.tolist()) & set(first.tolist()), "the odd step is not part of the pass"


@pytest.mark.parametrize(("n", "repeats", "expected"), [(5, 4, [4, 1]), (9, 2, [5, 4]), (4, None, [4])])
def test_resampling_fills_the_step_by_going_round(n: int, repeats: int | None, expected: list[int]) -> None:
    selector = Resampling(top=2 / n if n > 4 else 0.25, repeats=repeats)
    selector.observe(play(selector.select(POOL, FixedPrior(), n, np.random.default_rng(0)), 0))
    counts = np.unique(selector.select(POOL, FixedPrior(), n, np.random.default_rng(1)), return_counts=True)[1]
    assert sorted(counts.tolist(), reverse=True) == expected


def test_resampling_by_quantile_takes_ties() -> None:
    selector = Resampling(rule="quantile")
    chosen = selector.select(POOL, FixedPrior(), 8, np.random.default_rng(0))
    selector.observe(play(chosen, 0, np.zeros(24)))
    again = selector.select(POOL, FixedPrior(), 8, np.random.default_rng(1))
    assert sorted(set(again.tolist())) == sorted(set(np.repeat(chosen, 4)[:8].tolist()))


def test_a_value_needs_log_probabilities() -> None:
    selector = Resampling()
    places = selector.select(POOL, FixedPrior(), 4, np.random.default_rng(0))
    step = Step([POOL[place] for place in places], Uniform(), 16, rng=np.random.default_rng(0))
    while wave := step.next_wave():
        step.observe(*(r.result(k % 2) for k, r in enumerate(wave.rollouts)))
    with pytest.raises(RollwiseError, match="logprob"):
        selector.observe(step.close())


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("ceroo", {}, "did you mean 'cero'"),
        ("mopps", {"candidates": 0}, "candidates"),
        ("mopps", {"candidate": 2}, "did you mean 'candidates'"),
        ("greso", {"target": 0}, "target"),
        ("resampling", {"rule": "best"}, "quantile"),
        ("rollwise.step:Step", {}, "does not take its settings"),
    ],
)
def test_unknown_names_and_settings_are_refused(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RollwiseError, match=message):
        get_selector(name, **settings)


def test_a_selector_of_ones_own_is_taken_by_its_address() -> None:
    assert isinstance(get_selector("rollwise.selectors.passes:Passes", seed=4), Passes)


def test_states_are_plain_data() -> None:
    for name in ("passes", "greso", "resampling"):
        selector = get_selector(name)
        run(selector, 3)
        selector.load_state_dict(json.loads(json.dumps(selector.state_dict())))
