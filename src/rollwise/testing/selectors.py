"""Does a selector keep its contract?"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from rollwise.allocators import Uniform
from rollwise.beliefs import CarriedPrior
from rollwise.curators.base import NEEDS
from rollwise.step import Step
from rollwise.testing.situations import Generation, Situation
from rollwise.testing.states import carried_over, check_attributes, check_metrics
from rollwise.types import IntArray, StepRecord

METHODS = ("select", "observe", "metrics", "state_dict", "load_state_dict")


def check_selector(selector: Any, *, seed: int = 0, prompts: int = 40, per_step: int = 6, steps: int = 12) -> None:
    """Let `selector` choose the prompts of a short run and check what `rollwise.selectors.base.Selector` promises.

    * a `name`, `needs`, `copies`, finite `metrics()`;
    * places inside the pool, whole numbers, at most as many as a step takes; nothing selected is an idle round;
    * the same state and generator, the same selection; beliefs are left alone;
    * `state_dict` is plain data, and a run that resumes from it goes on with the same selections.

    The selector must be unused, and set up for a run of `prompts` prompts and `steps` steps of `per_step` where it asks.

    Raises:
        AssertionError: naming the promise and the step.
    """
    check_attributes(selector, "selector", METHODS, ("needs",), NEEDS)
    assert isinstance(getattr(selector, "copies", None), bool), (
        f"selector {selector.name}: copies must be True or False, whether every copy of a prompt gets its own group"
    )
    rng = np.random.default_rng(seed)
    pool = tuple(f"prompt-{place}" for place in range(prompts))
    coins = rng.choice([0.0, 1.0, *rng.random(6)], prompts)
    beliefs = CarriedPrior()
    unused = deepcopy(selector)
    other = deepcopy(selector)
    idle = 0
    for step in range(steps):
        key = int(rng.integers(1 << 31))
        before = beliefs.for_step(pool)
        places = checked(
            selector, selector.select(pool, beliefs, per_step, np.random.default_rng(key)), prompts, per_step
        )
        where = f"selector {selector.name}, step {step}"
        assert np.array_equal(before, beliefs.for_step(pool)), f"{where}: selecting changes the beliefs"
        again = np.asarray(other.select(pool, beliefs, per_step, np.random.default_rng(key)))
        assert np.array_equal(places, again), (
            f"{where}: a copy with the same state selects {again} instead of {places}; draw from the generator only"
        )
        check_metrics(selector, "selector")
        if len(places):
            chosen = tuple(pool[place] for place in places)
            slots = {pool[place]: coins[place] for place in places}
            record = run_step(step, chosen, np.array(list(slots.values())), rng)
            beliefs.observe(record.prompt_ids, record.successes, record.failures)
            selector.observe(record)
        else:
            idle += 1
        # The twin goes on from the state alone, as a resumed run would.
        other = carried_over(selector, deepcopy(unused), "selector")
    assert idle < steps, (
        f"selector {selector.name}: selects nothing in {steps} steps of {per_step} from {prompts} prompts"
    )


def checked(selector: Any, found: Any, prompts: int, most: int) -> IntArray:
    """The places (k,), or AssertionError where they are none."""
    places = np.asarray(found)
    kind = f"selector {selector.name}: select"
    assert places.ndim == 1 and (not places.size or np.issubdtype(places.dtype, np.integer)), (
        f"{kind} gives {places.dtype} of shape {places.shape}, not whole numbers (k,)"
    )
    assert len(places) <= most, f"{kind} gives {len(places)} prompts where a step takes {most}"
    assert not len(places) or (places.min() >= 0 and places.max() < prompts), (
        f"{kind} gives a place outside the pool of {prompts} prompts"
    )
    return places.astype(np.int64)


def run_step(index: int, prompt_ids: tuple[str, ...], coins: np.ndarray, rng: np.random.Generator) -> StepRecord:
    """A uniform step of four rollouts per prompt on coins (B,), one per different prompt."""
    situation = Situation(prompt_ids, 4 * len(prompt_ids), coins, unknown=0.1)
    generation = Generation(situation, rng)
    step = Step(prompt_ids, Uniform(), situation.budget, rng=rng, index=index, waves=2)
    while wave := step.next_wave():
        generation.start(wave)
        step.observe(*generation.due(everything=True))
    return step.close()
