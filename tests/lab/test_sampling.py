"""Playing a step with a model."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.allocators import get_allocator
from rollwise.lab.sampling import Means, play_step
from rollwise.lab.tasks import get_task
from rollwise.lab.warmup import Start, load_model
from rollwise.step import Step
from rollwise.types import StepRecord

from .support import WARMUP


def played(start: Start, singly: bool, budget: int = 48) -> StepRecord:
    task, problems = get_task("sort"), start.pool.take(np.arange(4))
    rule = get_allocator("adaroll", utility="min_max_reward", sequential=True)
    step = Step(problems.ids, rule, budget, rng=np.random.default_rng(0), n_min=0)
    model = load_model(task, WARMUP.size, start.weights)
    means = Means(rule, budget)
    assert means.singly
    means.singly = singly
    made, _ = play_step(model, task, step, problems, budget, 0, means)
    record = step.close()
    assert [row.tokens for row in record.rollouts] == made.lengths.tolist()
    assert [row.logprob for row in record.rollouts] == pytest.approx(made.logprobs.sum(1).tolist())
    return record


def test_looking_ahead_gives_the_rollouts_of_one_at_a_time(start: Start) -> None:
    ahead, plain = played(start, True), played(start, False)
    assert ahead.waves == plain.waves == 48 and ahead.counts.sum() == 48
    # some prompt takes more than were generated for it at first, or nothing was looked ahead for again
    assert ahead.counts.max() > 8 and ahead.counts.tolist() == plain.counts.tolist()
    for one, other in zip(ahead.rollouts, plain.rollouts, strict=True):
        assert (one.id, one.outcome, one.tokens) == (other.id, other.outcome, other.tokens)
        assert one.logprob == pytest.approx(other.logprob, rel=1e-4)
