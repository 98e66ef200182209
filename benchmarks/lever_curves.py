"""Effective weight w(p) over a run, of selectors and curators, for their pages in docs/methods.

    python benchmarks/lever_curves.py [--runs 10] [--updates 48] [--only cero,mopps]

512 prompts that are coins, rates spread evenly over the columns; updates of 64 prompts x 16 rollouts each, uniform
allocation, advantages r - group mean. w(p) is what a prompt's own gradient is multiplied by for every 16 rollouts the run
spent per prompt: summed over everything that trained, stored rollouts included, with each update's rows averaged (times
1024 over the rows that train), as losses that take a mean over rows do. Passes over the data weigh every prompt with 15.
The last line of a method has the rollouts made at a rate, 16 on average; intervals are over runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from method_curves import PER_PROMPT, PROMPTS, RATES, show

from rollwise.allocators import Uniform
from rollwise.beliefs import prior_source
from rollwise.effective_weight import Z95, contributions
from rollwise.methods import build_curators, build_selector, get_method, mix
from rollwise.presets import Method
from rollwise.selectors.passes import Passes
from rollwise.step import Step
from rollwise.types import FloatArray, Outcome, StepRecord

EACH = 64
"""Prompts at every rate."""
CONFIDENCE = 0.8
"""Mean probability of a token, which CoDaPO's weights look at; the same for all."""
PLAIN = get_method("grpo")
METHODS: dict[str, Method] = {
    "passes": PLAIN,
    "cero": get_method("cero"),
    "mopps": get_method("mopps"),
    "mopps discount .5": mix(PLAIN, selector="mopps", selector_settings={"discount": 0.5}),
    "greso alone": mix(PLAIN, selector="greso"),
    "greso": get_method("greso"),
    "resampling alone": mix(PLAIN, selector="resampling"),
    "codapo weights alone": mix(PLAIN, curators="codapo"),
    "codapo": get_method("codapo"),
    "dapo": get_method("dapo"),
    "dapo_capped": get_method("dapo_capped"),
    "replay": mix(get_method("replay"), curator_settings={"replay": {"warmup": 0}}),
    "replay even": mix(get_method("replay"), curator_settings={"replay": {"warmup": 0, "power": 0.0}}),
    "pods": get_method("pods"),
    "pods keep 8": mix(PLAIN, curators="pods", curator_settings={"pods": {"keep": 8}}),
    "aero curator": mix(PLAIN, curators="aero"),
    "balanced curator": mix(PLAIN, curators="balanced"),
    "reuse": mix(PLAIN, curators="reuse"),
}


def main() -> None:
    """Print three lines per method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--updates", type=int, default=48)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    only = [name for name in arguments.only.split(",") if name]
    print(f"{'p':24}" + "".join(f"{rate:8.2f}" for rate in RATES) + "   rollouts per update")
    for label, method in METHODS.items():
        if only and label not in only:
            continue
        found = [run_curve(method, arguments.updates, seed) for seed in range(arguments.runs)]
        weights, rollouts = (np.array([run[part] for run in found]) for part in (0, 1))
        show(label, weights.mean(axis=0), float(np.mean([run[2] for run in found])))
        show("  95 % interval, half", Z95 * weights.std(axis=0, ddof=1) / np.sqrt(len(found)))
        show("  rollouts", rollouts.mean(axis=0))


def run_curve(method: Method, updates: int, seed: int) -> tuple[FloatArray, FloatArray, float]:
    """Of one run: w (R,), rollouts (R,) per prompt where 16 is average, and rollouts per update."""
    gains, spent, made = np.zeros(len(RATES)), np.zeros(len(RATES)), 0
    for record in play(method, updates, seed):
        groups = np.array([int(name) % len(RATES) for name in record.prompt_ids])
        spent += np.bincount(groups, weights=record.counts, minlength=len(RATES))
        rows = len(record.trained) + len(record.stored)
        if not rows:
            continue
        made += 1
        fresh = np.bincount(
            groups, weights=contributions(record, RATES[groups], record.advantages), minlength=len(RATES)
        )
        gains += (fresh + stored_contributions(record)) * PROMPTS * PER_PROMPT / rows
    share = PER_PROMPT * len(RATES) / spent.sum()
    return gains * share, spent * share, float(spent.sum() / made)


def stored_contributions(record: StepRecord) -> FloatArray:
    """(R,) what rollouts of earlier steps add: advantage times score, the policy being the one that made them."""
    gains = np.zeros(len(RATES))
    for row in record.stored:
        place = int(row.rollout.prompt_id) % len(RATES)
        p = RATES[place]
        won = row.rollout.outcome is Outcome.SUCCESS
        gains[place] += (row.advantage or 0.0) * (1 / p if won else -1 / (1 - p))
    return gains


def play(method: Method, updates: int, seed: int) -> Iterator[StepRecord]:
    """The records of a run, round by round, until it made its updates or its selector is done."""
    rng = np.random.default_rng([seed, 5])
    pool = [str(place) for place in range(EACH * len(RATES))]
    selector = build_selector(method, updates, seed) or Passes(seed)
    curators, beliefs = build_curators(method), prior_source("1,1")
    index, made = 0, 0
    while made < updates and not selector.done:
        places = selector.select(pool, beliefs, PROMPTS, rng)
        index += 1
        if not len(places):
            continue
        names = [pool[place] for place in places]
        step = Step(
            names,
            Uniform(),
            PER_PROMPT * len(names),
            rng=rng,
            index=index,
            waves=1,
            advantage="dr_grpo",
            curators=curators,
            copies=selector.copies,
        )
        while wave := step.next_wave():
            for rollout in wave.rollouts:
                won = rng.random() < RATES[int(rollout.prompt_id) % len(RATES)]
                step.observe(rollout.result(won, tokens=1, logprob=float(np.log(CONFIDENCE))))
        record = step.close()
        selector.observe(record)
        made += not record.idle
        yield record


if __name__ == "__main__":
    main()
