"""What a rule changes, taken apart: the weight w(p) on each prompt's gradient, and how rollouts are shared.

(a) a rule as published; (b) the same rule, its prompts weighed so that its curve matches uniform's; (c) uniform, its
prompts weighed by the rule's curve. Raw advantages (dr_grpo), where uniform's curve is flat. Weights come from the carried
belief held at the opening of the step. What was really applied is measured in every run, with the true rates, which cost
no rollout of the budget.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rollwise.effective_weight import contributions, measured_weight
from rollwise.lab import Arm, Run, Training, compare, parse_arm, prepare_start
from rollwise.lab.measure import success_rates
from rollwise.lab.pools import Problems
from rollwise.lab.runs import result_path
from rollwise.lab.state import write_text
from rollwise.lab.tasks import get_task
from rollwise.lab.warmup import cache_folder, load_model
from rollwise.pool import Pool
from rollwise.types import FloatArray, StepRecord
from rollwise.utilities import UTILITIES

METHODS = ("min_variance", "sum_variance")
EDGES = np.array([0.0, 0.03, 0.08, 0.15, 0.25, 0.4, 0.6, 0.75, 0.85, 0.92, 0.97, 1.0])
"""Bins of the true rate."""
INNER = slice(1, -1)
DRAWS = 40


def start_pool(training: Training, tasks: Sequence[str], seeds: Sequence[int] = (0, 1)) -> Pool:
    """The warm models' true rates on their training problems, in bins."""
    rates = []
    for task in tasks:
        for seed in seeds:
            warmup = replace(training.warmup, task=task, seed=seed)
            start, kind = prepare_start(warmup, cache_folder()), get_task(task)
            rates.append(success_rates(load_model(kind, warmup.size, start.weights), kind, start.pool, seed=seed))
    whole = np.clip(np.concatenate(rates), 1e-4, 1 - 1e-4)
    return Pool.histogram(whole, np.ones(len(whole))).coarse(EDGES)


def weight_curves(training: Training, tasks: Sequence[str]) -> dict[str, Any]:
    """w(p) of uniform and of every utility in four waves, raw and divided by the group's deviation, at mean 1."""
    pool = start_pool(training, tasks)
    found: dict[str, Any] = {"rates": pool.rates.tolist(), "shares": pool.shares.tolist()}
    for advantage in ("dr_grpo", "grpo"):
        own = {}
        for name in ("uniform", *UTILITIES):
            curve = measure(name, pool, training, advantage)
            own[name] = {"weight": curve.weight.tolist(), "low": curve.low.tolist(), "high": curve.high.tolist()}
            print(f"  {time.strftime('%H:%M:%S')} w(p) {advantage} {name}", flush=True)
        found[advantage] = own
    return found


def measure(name: str, pool: Pool, training: Training, advantage: str) -> Any:
    """The curve of a rule on the pool, divided by its mean over prompts."""
    arm = parse_arm(name)
    curve = measured_weight(
        arm.rule(),
        pool,
        prompts=training.prompts,
        per_prompt=training.rollouts,
        draws=DRAWS,
        fewest=20,
        advantage=advantage,
        waves=1 if name == "uniform" else arm.waves,
        n_min=arm.n_min,
    )
    mean = float(pool.shares @ np.nan_to_num(curve.weight))
    return replace(curve, weight=curve.weight / mean, low=curve.low / mean, high=curve.high / mean)


def arms_of(curves: dict[str, Any], rates: FloatArray) -> list[Arm]:
    """Uniform, and for each method its three arms."""
    flat = parse_arm("uniform@loss=dr_grpo")
    found = [flat]
    for name in METHODS:
        weight = np.clip(np.array(curves[name]), 0.1, 10.0)
        plain = parse_arm(f"{name}@loss=dr_grpo")
        settings = {"weigh_by": "carried"}
        inverse = points(rates, 1.0 / weight)
        found += [
            plain,
            replace(plain, name=f"{name}, weights of uniform", curve=inverse, **settings),
            replace(flat, name=f"uniform, weights of {name}", curve=points(rates, weight), **settings),
        ]
    return found


def points(rates: FloatArray, weight: FloatArray) -> tuple[tuple[float, float], ...]:
    return tuple((round(float(p), 4), round(float(w), 4)) for p, w in zip(rates, weight, strict=True))


class Audited(Run):
    """A run that notes, with the true rates at the opening of each step, what each prompt's gradient was multiplied by."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        size = len(EDGES) - 1
        self.pushed, self.met, self.given = np.zeros(size), np.zeros(size), np.zeros(size)

    def step(self) -> StepRecord | None:
        record = super().step()
        assert record is not None
        pushed = contributions(record, self._true, record.advantages * self._applied[record.slots])
        place = np.clip(np.searchsorted(EDGES, self._true, side="right") - 1, 0, len(self.met) - 1)
        np.add.at(self.pushed, place, pushed)
        np.add.at(self.met, place, 1.0)
        np.add.at(self.given, place, record.counts)
        return record

    def _weights(self, problems: Problems, rates: FloatArray | None) -> FloatArray:
        """Called before the update, so the rates are those that the step was generated with."""
        true = success_rates(self.model, self.task, problems, seed=self.progress.step)
        self._true = np.clip(true, 1e-6, 1 - 1e-6)
        self._applied = super()._weights(problems, rates)
        return self._applied


@dataclass(frozen=True)
class Job:
    arm: Arm
    training: Training
    path: Path


def run_job(job: Job) -> dict[str, Any]:
    """One audited run, written to its file."""
    torch.set_num_threads(1)
    run = Audited(job.arm, job.training, prepare_start(job.training.warmup, cache_folder()))
    result = run.finish()
    audit = {"pushed": run.pushed.tolist(), "met": run.met.tolist(), "given": run.given.tolist()}
    result = {key: value for key, value in result.items() if key != "metrics"} | {"audit": audit}
    write_text(job.path, json.dumps(result) + "\n")
    return result


def separate(
    training: Training, tasks: Sequence[str], seeds: Sequence[int], options: argparse.Namespace
) -> dict[str, Any]:
    """Paired differences of all arms to uniform, and the weights that were realised.

    (c) minus uniform is what a rule's weights do without its allocation, (b) minus uniform what its allocation does without
    its weights. `mismatch` is the mean over prompts of |realised weight - that of the arm it is to match|.
    """
    path = options.runs / "causes" / "curves.json"
    if path.exists():
        known = json.loads(path.read_text())
    elif options.summary:
        return {}
    else:
        pool = start_pool(training, tasks)
        curves = {name: measure(name, pool, training, "dr_grpo").weight.tolist() for name in METHODS}
        known = {"rates": pool.rates.tolist(), "shares": pool.shares.tolist(), "curves": curves}
        write_text(path, json.dumps(known) + "\n")
    rates = np.array(known["rates"])
    arms = arms_of(known["curves"], rates)
    jobs = [
        Job(arm, at, result_path(options.runs / "causes", task, arm, seed))
        for seed in seeds
        for task in tasks
        for arm in arms
        for at in [replace(training, warmup=replace(training.warmup, task=task, seed=seed))]
    ]
    missing = [] if options.summary else [job for job in jobs if not job.path.exists()]
    if missing:
        with multiprocessing.get_context("spawn").Pool(options.jobs) as workers:
            for done, result in enumerate(workers.imap_unordered(run_job, missing), start=1):
                print(f"  {time.strftime('%H:%M:%S')} {done}/{len(missing)} {result['arm']}", flush=True)
    found = [json.loads(job.path.read_text()) for job in jobs if job.path.exists()]
    final = {(run["arm"], run["task"], run["seed"]): run["curve"][-1]["sampled"] for run in found}
    report: dict[str, Any] = {"curves": known, "arms": {}}
    for arm in arms:
        own = [run for run in found if run["arm"] == arm.name]
        if own:
            report["arms"][arm.name] = {
                "seeds": len({result["seed"] for result in own}),
                "final": float(np.mean([result["curve"][-1]["sampled"] for result in own])),
                "minus_uniform": differences(final, arm.name, arms[0].name, tasks),
                **realised(own),
            }
    for name in METHODS:
        published = f"{name}@loss=dr_grpo"
        matched, weighed = f"{name}, weights of uniform", f"uniform, weights of {name}"
        for arm, like in ((matched, arms[0].name), (weighed, published)):
            if arm in report["arms"] and like in report["arms"]:
                mine, wanted = (report["arms"][each] for each in (arm, like))
                gap = np.abs(np.array(mine["realised_weight"]) - np.array(wanted["realised_weight"]))
                mine["mismatch"] = float(np.array(mine["share"]) @ gap)
        report["arms"].get(matched, {})["minus_published"] = differences(final, matched, published, tasks)
        report["arms"].get(weighed, {})["minus_published"] = differences(final, weighed, published, tasks)
    return report


def differences(
    final: dict[tuple[str, str, int], float], arm: str, rival: str, tasks: Sequence[str]
) -> dict[str, Any] | None:
    """Paired differences per task and, over the seeds that have all tasks, of their means."""
    gaps = {
        task: {seed: value - final[rival, task, seed] for (a, t, seed), value in final.items()
               if (a, t) == (arm, task) and (rival, task, seed) in final}
        for task in tasks
    }  # fmt: skip
    seeds = sorted(set.intersection(*(set(own) for own in gaps.values())))
    if not seeds:
        return None
    found = {task: compare(list(own.values())) for task, own in gaps.items()}
    return found | {"all tasks": compare([float(np.mean([gaps[task][seed] for task in tasks])) for seed in seeds])}


def realised(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rollouts of a prompt by bin of the true rate, and the realised weight in the inner bins, at a mean over prompts of 1.

    The outermost bins are left out of the weights: there one rare success stands for 1/p, and noise is all one sees.
    """
    pushed, met, given = (np.sum([run["audit"][key] for run in results], axis=0) for key in ("pushed", "met", "given"))
    weight, share = pushed[INNER] / np.maximum(met[INNER], 1.0), met[INNER] / met[INNER].sum()
    return {
        "bins": EDGES.tolist(),
        "rollouts": (given / np.maximum(met, 1.0)).tolist(),
        "realised_weight": (weight / (share @ weight)).tolist(),
        "share": share.tolist(),
    }
