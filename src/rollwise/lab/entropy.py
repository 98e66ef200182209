"""How much the problems of a warm start differ in difficulty, beside what adaptive rules gained on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.lab.measure import success_rates
from rollwise.lab.results import read_results
from rollwise.lab.summary import baseline_of
from rollwise.lab.tasks import get_task
from rollwise.lab.warmup import Warmup, load_model, prepare_start
from rollwise.pool import Pool
from rollwise.simulate.difficulty import difficulty
from rollwise.types import RollwiseError


def start_pool(warmup: Warmup, cache: str | Path | None = None) -> Pool:
    """The success rates of a warm model on its training problems, as a pool of equal shares."""
    start = prepare_start(warmup, cache, report=lambda line: None)
    task = get_task(warmup.task)
    rates = success_rates(load_model(task, warmup.size, start.weights), task, start.pool, seed=warmup.seed)
    return Pool.histogram(rates.tolist(), [1.0] * len(rates))


def gains(folder: str | Path, limit: int = 128, cache: str | Path | None = None) -> list[dict[str, Any]]:
    """Per task: entropy of the start's difficulty, and each arm's relative gain (acc - acc_uniform) / acc_uniform.

    The entropy is the mean over the seeds that ran, of the histogram over doubling bins up to `limit` rollouts. Gains are
    means over the seeds that both arms have, against the uniform arm of the same loss.

    Raises:
        RollwiseError: a folder that holds no runs of the lab.
    """
    shared, results = read_results(folder)
    warmup = shared["warmup"]
    finals: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for result in results:
        finals[result["task"]][result["arm"]][result["seed"]] = result["curve"][-1]["sampled"]
    rows = []
    for task, arms in finals.items():
        seeds = sorted({seed for runs in arms.values() for seed in runs})
        pools = [start_pool(Warmup(**warmup | {"task": task, "seed": seed}), cache) for seed in seeds]
        row: dict[str, Any] = {
            "folder": str(folder),
            "task": task,
            "pool": warmup["pool"],
            "seeds": len(seeds),
            "entropy": float(np.mean([difficulty(pool, limit).entropy for pool in pools])),
            "gain": {},
        }
        for arm, runs in arms.items():
            rival = baseline_of(arm, list(arms))
            # there is no gain relative to an accuracy of 0
            both = sorted(seed for seed in set(runs) & set(arms[rival]) if arms[rival][seed])
            if rival != arm and both:
                gain = [runs[seed] / arms[rival][seed] - 1.0 for seed in both]
                row["gain"][arm] = {"mean": float(np.mean(gain)), "seeds": len(both)}
        rows.append(row)
    return rows


def mean_series(results: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    """By arm: the mean over runs of per-step metrics, as far as the shortest run goes.

    Raises:
        RollwiseError: a metric the runs do not have.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for arm in dict.fromkeys(result["arm"] for result in results):
        runs = [result["metrics"] for result in results if result["arm"] == arm]
        if missing := [name for name in names if any(name not in run for run in runs)]:
            raise RollwiseError(f"folder: its runs have no {missing[0]}; run them again with this version")
        length = min(len(run[names[0]]) for run in runs)
        found[arm] = {name: np.mean([run[name][:length] for run in runs], axis=0).tolist() for name in names}
    return found
