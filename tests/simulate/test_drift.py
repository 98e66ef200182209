"""How rates move: by the gradient received, worked out by hand, and as a log's did."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.allocators import get_allocator
from rollwise.simulate.drift import GradientDrift, RecordedDrift, smooth
from rollwise.simulate.environment import Environment, play
from rollwise.simulate.imperfections import Imperfections
from rollwise.simulate.pools import parse_pool
from rollwise.simulate.recorded import RecordedLog, read_log
from rollwise.step import Step
from rollwise.types import RollwiseError


def closed(rates, imperfections=None, advantage="dr_grpo", budget=8):
    ids = [str(k) for k in range(len(rates))]
    step = Step(ids, get_allocator("uniform"), budget, rng=np.random.default_rng(0), advantage=advantage, waves=1)
    return play(step, np.array(rates), (3, 0), imperfections or Imperfections())


def logit(p):
    return np.log(p / (1 - p))


def test_a_step_is_the_sum_of_advantage_times_score():
    found = closed([0.5, 0.3])
    moved = GradientDrift(0.7).move(found.rates, np.arange(2), found.record, found.success, 0.0)
    for slot, p in enumerate(found.rates):
        won = found.success[found.record.slots == slot].astype(float)
        pull = ((won - won.mean()) * (won - p)).sum()
        # budget 8 on two prompts: four rollouts each on average
        assert logit(moved[slot]) - logit(p) == pytest.approx(0.7 * pull / 4)


def test_dead_groups_and_hopeless_prompts_stay():
    found = closed([0.0, 1.0, 0.5, 0.5], budget=32)
    moved = GradientDrift(1.0).move(found.rates, np.arange(4), found.record, found.success, 0.0)
    assert moved[:2].tolist() == [0.0, 1.0]
    assert (moved[2:] > 0.5).all()


def test_wrong_verdicts_teach_what_is_wrong():
    flipped = Imperfections(false_positive=1.0, false_negative=1.0)
    found = closed([0.5, 0.5], flipped)
    moved = GradientDrift(1.0).move(found.rates, np.arange(2), found.record, found.success, 0.0)
    assert (moved < 0.5).all()


def test_transfer_moves_prompts_that_were_not_there():
    found = closed([0.5, 0.3])
    rates = np.array([0.2, 0.5, 0.3, 0.9])
    alone = GradientDrift(1.0).move(rates, np.array([1, 2]), found.record, found.success, 0.0)
    assert alone[[0, 3]].tolist() == [0.2, 0.9]
    shared = GradientDrift(1.0, transfer=1.0).move(rates, np.array([1, 2]), found.record, found.success, 0.0)
    assert (shared > alone).all()


def test_learning_raises_the_population():
    environment = Environment(parse_pool("beta:1,1"), 0, 16, GradientDrift(0.5))
    before = environment.rates.mean()
    for k in range(8):
        ids, rates = environment.open(k, 8)
        step = Step(ids, get_allocator("uniform"), 64, rng=np.random.default_rng(0), index=k)
        environment.learn(play(step, rates, (0, k)))
    assert environment.rates.mean() > before + 0.05


def test_smoothing_by_hand():
    assert smooth(np.array([[4, 0, 8]]), 0.5).tolist() == [[4 + 2, 2 + 4, 1 + 8]]


def test_recorded_rates_follow_the_log_and_stay_at_its_end():
    log = read_log("rlvr")
    drift = RecordedDrift(log)
    start, end = drift.rates[:, 0], drift.rates[:, -1]
    seen = log.trials[:, 0] > 0
    assert np.corrcoef(start[seen], log.successes[seen, 0])[0, 1] > 0.85
    assert end.mean() > start.mean()
    found = closed([0.5, 0.5])
    assert (drift.move(start, np.arange(2), found.record, found.success, 999.0) == end).all()


def test_a_record_of_one_visit_cannot_move():
    with pytest.raises(RollwiseError, match="one visit"):
        RecordedDrift(RecordedLog(("a",), np.array([[3]]), np.array([[8]])))


def test_drift_wants_a_population():
    with pytest.raises(RollwiseError, match="population"):
        Environment(parse_pool("hard"), 0, drift=GradientDrift(0.1))
