"""Playing steps: paired coins, passes over a population, and what goes wrong on the way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollwise.allocators import get_allocator
from rollwise.simulate.environment import Environment, play
from rollwise.simulate.imperfections import PERFECT, Imperfections
from rollwise.simulate.pools import parse_pool
from rollwise.step import Step
from rollwise.types import Outcome, RollwiseError

RATES = np.array([0.1, 0.4, 0.6, 0.95])


def played(allocator="uniform", imperfections=PERFECT, key=(0, 0), waves=4, rates=RATES, budget=32, **settings):
    rule = get_allocator(allocator, **settings)
    ids = [f"p{k}" for k in range(len(rates))]
    step = Step(ids, rule, budget, rng=np.random.default_rng(0), waves=waves, n_min=0)
    return play(step, rates, key, imperfections)


def outcomes(found, slot):
    return [row.outcome for row in found.record.rollouts if row.prompt_id == f"p{slot}"]


def test_methods_meet_the_same_coins_rollout_by_rollout():
    rates = np.array([0.01, 0.4, 0.6, 0.95])
    one = played(rates=rates)
    other = played("adaroll", utility="sum_max_reward", sequential=True, rates=rates)
    assert one.record.counts.tolist() != other.record.counts.tolist()
    for slot in range(len(RATES)):
        a, b = outcomes(one, slot), outcomes(other, slot)
        assert a[: len(b)] == b[: len(a)]


def test_coins_have_their_chances_and_keys_do_not_repeat():
    shares = np.mean([played(key=(0, k)).record.successes / 8 for k in range(300)], axis=0)
    assert shares == pytest.approx(RATES, abs=0.035)
    assert played(key=(0, 1)).success.tolist() != played(key=(1, 0)).success.tolist()


def test_more_rollouts_than_a_chunk_of_coins():
    found = played(rates=np.array([0.5]), budget=200, waves=7)
    assert found.record.counts.tolist() == [200]
    assert 70 < found.record.successes[0] < 130


def test_a_pass_meets_every_prompt_once_and_the_next_in_another_order():
    environment = Environment(parse_pool("beta:1,1"), seed=0, population=12)
    first = [environment.open(k, 4)[0] for k in range(3)]
    second = [environment.open(3 + k, 4)[0] for k in range(3)]
    assert sorted(sum(first, [])) == sorted(sum(second, [])) == sorted(map(str, range(12)))
    assert first != second


def test_a_step_never_holds_a_prompt_twice_where_the_population_is_no_multiple():
    environment = Environment(parse_pool("hard"), seed=0, population=10)
    for k in range(9):
        ids, rates = environment.open(k, 4)
        assert len(set(ids)) == 4
        assert rates.tolist() == environment.rates[[int(i) for i in ids]].tolist()


def test_new_prompts_differ_by_step_and_seed_and_repeat_exactly():
    pool = parse_pool("beta:1,1")
    draws = [Environment(pool, seed).open(step, 4)[1].tolist() for seed in (0, 1) for step in (0, 1)]
    assert len({tuple(draw) for draw in draws}) == 4
    assert Environment(pool, 1).open(1, 4)[1].tolist() == draws[3]


def test_a_population_smaller_than_a_step_is_refused():
    with pytest.raises(RollwiseError, match="population"):
        Environment(parse_pool("hard"), 0, population=3).open(0, 4)


def test_unknown_is_paid_for_and_never_a_failure():
    found = played(imperfections=Imperfections(unknown=1.0))
    assert found.record.counts.sum() == 32
    assert found.record.unknown.sum() == 32
    assert found.record.failures.sum() == found.record.successes.sum() == 0
    assert not found.record.advantages.any()


@pytest.mark.parametrize("utility", ["min_variance", "min_squared_advantage", "sum_max_reward"])
def test_some_unknown_leave_the_known_ones_true(utility):
    found = played("adaroll", Imperfections(unknown=0.4), utility=utility)
    rows = list(zip(found.record.rollouts, found.success, strict=True))
    known = [
        (row.outcome is Outcome.SUCCESS, bool(truth)) for row, truth in rows if row.outcome is not Outcome.UNKNOWN
    ]
    assert 0 < len(known) < 32 == found.record.counts.sum()
    assert all(verdict == truth for verdict, truth in known)


def test_lost_rollouts_are_paid_and_closed_as_unknown():
    found = played("adaroll", Imperfections(lost=0.5), utility="sum_max_reward")
    assert found.record.counts.sum() == 32
    assert found.record.metrics["lost"] == found.record.unknown.sum() > 0
    assert found.tokens == 32


def test_all_lost_still_ends():
    found = played("adaroll", Imperfections(lost=1.0), utility="min_variance")
    assert found.record.unknown.sum() == found.record.counts.sum() == 32


def test_wrong_verdicts_go_in_the_direction_named():
    refused = played(imperfections=Imperfections(false_negative=1.0))
    assert refused.record.successes.sum() == 0 < refused.success.sum()
    passed = played(imperfections=Imperfections(false_positive=1.0))
    assert passed.record.successes.sum() == 32 > passed.success.sum()


def test_patience_saves_time_and_makes_rollouts_late():
    slow = Imperfections(delay=0.5, straggler=0.2)
    waited = played("adaroll", slow, utility="sum_max_reward")
    hasty = played("adaroll", Imperfections(delay=0.5, straggler=0.2, patience=1.5), utility="sum_max_reward")
    assert waited.late == 0 < hasty.late
    assert hasty.clock < waited.clock
    assert hasty.record.metrics["lost"] == 0


def test_a_deadline_loses_what_is_still_running():
    found = played(imperfections=Imperfections(straggler=0.5, patience=1.5, deadline=1.5))
    assert found.clock == pytest.approx(6.0)
    # a straggler takes ten: none of any wave is back by then
    assert found.record.metrics["lost"] == found.record.unknown.sum() > 0


def test_perfect_waves_take_one_duration_each():
    assert played(waves=4).clock == 4.0


@settings(max_examples=25, deadline=None)
@given(
    unknown=st.floats(0, 1),
    lost=st.floats(0, 1),
    straggler=st.floats(0, 1),
    delay=st.floats(0, 2),
    patience=st.none() | st.floats(0, 5),
    utility=st.sampled_from(["sum_max_reward", "min_squared_advantage"]),
)
def test_budget_is_spent_exactly_whatever_goes_wrong(unknown, lost, straggler, delay, patience, utility):
    flaws = Imperfections(unknown=unknown, lost=lost, straggler=straggler, delay=delay, patience=patience)
    found = played("adaroll", flaws, utility=utility)
    record = found.record
    assert record.counts.sum() == 32
    assert (record.successes + record.failures + record.unknown == record.counts).all()


@pytest.mark.parametrize(
    ("switch", "value"), [("unknown", 1.5), ("lost", -0.1), ("delay", -1.0), ("patience", float("inf"))]
)
def test_a_switch_out_of_range_is_named(switch, value):
    with pytest.raises(RollwiseError, match=switch):
        Imperfections(**{switch: value})
