"""Running means of tokens by prompt and outcome."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from rollwise.allocators import get_allocator
from rollwise.beliefs.costs import TokenCosts
from rollwise.step import Step
from rollwise.types import RollwiseError, StepRecord


def closed(**told: Sequence[tuple[int | None, int]]) -> StepRecord:
    """A step whose prompts' rollouts came back with these outcomes and tokens."""
    size = len(next(iter(told.values())))
    step = Step(list(told), get_allocator("uniform"), size * len(told), rng=np.random.default_rng(0), waves=1)
    wave = step.next_wave()
    assert wave is not None
    left = {key: iter(rows) for key, rows in told.items()}
    for rollout in wave.rollouts:
        outcome, tokens = next(left[rollout.prompt_id])
        step.observe(rollout.result(outcome, tokens=tokens))
    return step.close()


def test_a_prompt_costs_what_it_cost_drawn_towards_the_pool() -> None:
    costs = TokenCosts(start=50.0)
    assert costs.for_step(["a", "b"]).tolist() == [[50.0, 50.0]] * 2
    costs.observe(closed(a=[(1, 10), (1, 10), (0, 30)], b=[(0, 60), (0, 60), (None, 999)]))
    # pool: successes 10, failures (30 + 60 + 60) / 3 = 50
    found = costs.for_step(["a", "b", "new"])
    assert found[2] == pytest.approx([10, 50])
    assert found[0] == pytest.approx([10, (2 * 50 + 30) / 3])
    assert found[1] == pytest.approx([10, (2 * 50 + 120) / 4])


def test_an_outcome_never_seen_costs_what_any_rollout_does() -> None:
    costs = TokenCosts(start=50.0)
    costs.observe(closed(a=[(0, 20), (0, 40)]))
    assert costs.for_step(["new"])[0] == pytest.approx([30, 30])


def test_what_was_seen_before_fades() -> None:
    costs = TokenCosts(start=50.0, discount=0.5)
    costs.observe(closed(a=[(1, 10), (1, 10)]))
    costs.observe(closed(a=[(1, 40), (1, 40)]))
    # sums: 0.5 * 20 + 80 over 0.5 * 2 + 2
    assert costs.for_step(["a", "new"])[:, 0] == pytest.approx([30, 30])


def test_pool_means_alone_are_the_same_for_every_prompt() -> None:
    costs = TokenCosts(start=50.0, by_prompt=False)
    costs.observe(closed(a=[(1, 10), (1, 10)], b=[(1, 30), (0, 7)]))
    assert costs.for_step(["a", "b"]) == pytest.approx(np.array([[50 / 3, 7]] * 2))


def test_the_same_costs_follow_after_saving_as_json() -> None:
    costs, other = TokenCosts(start=50.0), TokenCosts(start=50.0)
    costs.observe(closed(a=[(1, 10), (0, 30)], b=[(0, 60), (0, 61)]))
    plain = {
        key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in costs.state_dict().items()
    }
    other.load_state_dict(json.loads(json.dumps(plain)))
    more = closed(a=[(1, 11), (0, 31)], c=[(0, 5), (1, 6)])
    costs.observe(more)
    other.observe(more)
    assert np.array_equal(costs.for_step(["a", "b", "c", "d"]), other.for_step(["a", "b", "c", "d"]))


@pytest.mark.parametrize(
    ("settings", "message"), [({"start": 0}, "start: 0 tokens"), ({"start": 9, "discount": 2}, "discount: 2")]
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(RollwiseError, match=message):
        TokenCosts(**settings)
