"""From results to a table: accuracy after equal rollouts, and each arm's paired difference to a baseline."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from rollwise.lab.published import loss_of
from rollwise.suggest import nearest
from rollwise.types import FloatArray, RollwiseError

RESAMPLES = 10_000
ALL = "all tasks"
MEASURES = ("final", "greedy", "area")


def measures(result: dict[str, Any]) -> dict[str, float]:
    """Of one run: sampled and greedy accuracy at its end, and the mean of the sampled curve over what it ends by."""
    curve = result["curve"]
    spent = np.array([point[axis_of(result)] for point in curve], dtype=np.float64)
    sampled = np.array([point["sampled"] for point in curve])
    span = spent[-1] - spent[0]
    area = float((np.diff(spent) * (sampled[1:] + sampled[:-1]) / 2).sum() / span) if span else float(sampled[-1])
    return {"final": float(sampled[-1]), "greedy": float(curve[-1]["greedy"]), "area": area}


def axis_of(result: dict[str, Any]) -> str:
    """What the run's evaluations are spread over: `rollouts` or `tokens`."""
    return str(result.get("axis", "rollouts"))


def rollouts_to_reach(result: dict[str, Any], accuracy: float) -> float | None:
    """Rollouts spent (tokens, where the run ends by these) when the sampled curve first reaches `accuracy`, straight lines
    between points; None if never."""
    axis = axis_of(result)
    before: dict[str, Any] | None = None
    for point in result["curve"]:
        if point["sampled"] >= accuracy:
            if before is None:
                return float(point[axis])
            share = (accuracy - before["sampled"]) / (point["sampled"] - before["sampled"])
            return float(before[axis] + share * (point[axis] - before[axis]))
        before = point
    return None


def compare(differences: Sequence[float], seed: int = 0) -> dict[str, Any]:
    """Paired differences (K seeds): mean, deviation, 95 % bootstrap interval, and seeds a test of them would need.

    `seeds_needed` is ((z_.975 + z_.8) sd / mean)^2, for power 0.8 at level 0.05, were the true difference the observed
    one; `detectable` the difference that this many seeds would detect so. None where there is one seed, or no spread.
    """
    values = np.asarray(differences, dtype=np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return {"seeds": len(values), "mean": mean, "sd": None, "interval": None, "seeds_needed": None}
    sd = float(values.std(ddof=1))
    draws = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(values[draws].mean(axis=1), (0.025, 0.975))
    reach = (NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)) * sd
    return {
        "seeds": len(values),
        "mean": mean,
        "sd": sd,
        "interval": [float(low), float(high)],
        "seeds_needed": max(2, math.ceil((reach / mean) ** 2)) if mean and abs(reach / mean) < 1e4 else None,
        "detectable": reach / math.sqrt(len(values)),
    }


def summarise(results: Sequence[dict[str, Any]], baseline: str | None = None) -> list[dict[str, Any]]:
    """One row per task and arm, in order of appearance; with several tasks also rows over all, seed by seed.

    `baseline` is the arm the others are compared with, by default `baseline_of` each arm. Seeds that one of the two lacks
    are left out of a difference. `to_baseline` counts how often the baseline's final accuracy was reached, with the
    median of the rollouts it took as a share of the whole budget (a run that never reached it counts as over 1).

    Raises:
        RollwiseError: no results, or no arm of that name.
    """
    if not results:
        raise RollwiseError("results: none to summarise; run at least one seed")
    arms = list(dict.fromkeys(result["arm"] for result in results))
    if baseline is not None and baseline not in arms:
        raise RollwiseError(f"baseline: no arm {baseline!r}; {nearest(baseline, arms)}")
    tasks = list(dict.fromkeys(result["task"] for result in results))
    runs = {(result["task"], result["arm"], result["seed"]): result for result in results}
    scores = {key: measures(result) for key, result in runs.items()}
    rows: list[dict[str, Any]] = []
    gaps: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for task in tasks:
        for arm in arms:
            seeds = sorted(seed for t, a, seed in runs if (t, a) == (task, arm))
            if not seeds:
                continue
            row: dict[str, Any] = {"task": task, "arm": arm, "seeds": len(seeds)}
            for name in MEASURES:
                row[name] = _spread([scores[task, arm, seed][name] for seed in seeds])
            row |= _costs([runs[task, arm, seed] for seed in seeds])
            rival = baseline or baseline_of(arm, arms)
            shared = [seed for seed in seeds if (task, rival, seed) in runs]
            if rival != arm and shared:
                row["baseline"] = rival
                for name in MEASURES:
                    found = [scores[task, arm, seed][name] - scores[task, rival, seed][name] for seed in shared]
                    row[f"{name}_difference"] = compare(found)
                    for seed, gap in zip(shared, found, strict=True):
                        gaps[arm, name][seed].append(gap)
                row["to_baseline"] = _reach(
                    [(runs[task, arm, seed], scores[task, rival, seed]["final"]) for seed in shared]
                )
            rows.append(row)
    if len(tasks) > 1:
        rows += [_over_tasks(arm, baseline or baseline_of(arm, arms), gaps, len(tasks)) for arm in arms]
    return [row for row in rows if row]


def baseline_of(arm: str, arms: Sequence[str]) -> str:
    """The uniform arm with the same loss as `arm`, by their names; else the first uniform arm; else the first arm."""
    for wanted in (f"uniform@loss={loss_of(arm)}", "uniform"):
        if wanted in arms:
            return wanted
    return next((name for name in arms if name.split("@")[0] == "uniform"), arms[0])


def _spread(values: Sequence[float]) -> dict[str, float]:
    array: FloatArray = np.asarray(values, dtype=np.float64)
    return {"mean": float(array.mean()), "sd": float(array.std(ddof=1)) if len(array) > 1 else 0.0}


def _costs(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over runs of what was spent, and of step metrics worth a look."""
    found = {key: float(np.mean([run[key] for run in runs])) for key in ("rollouts", "steps", "tokens", "seconds")}
    found["trained_rollouts"] = float(np.mean([run["trained_rollouts"] for run in runs]))
    for key in ("dead_prompt_share", "informative_rollout_share", "unsolved_share", "alloc_entropy", "max_n"):
        found[key] = float(np.mean([np.mean(run["metrics"][key]) for run in runs]))
    return found


def _reach(pairs: Sequence[tuple[dict[str, Any], float]]) -> dict[str, Any]:
    found = [(rollouts_to_reach(run, accuracy), run[axis_of(run)]) for run, accuracy in pairs]
    shares = [math.inf if spent is None else spent / total for spent, total in found]
    median = float(np.median(shares))
    return {
        "reached": sum(share < math.inf for share in shares),
        "of": len(shares),
        "median_share": median if math.isfinite(median) else None,
    }


def _over_tasks(
    arm: str, rival: str, gaps: dict[tuple[str, str], dict[int, list[float]]], tasks: int
) -> dict[str, Any]:
    """The row over all tasks: differences averaged over tasks within each seed that has them all."""
    row: dict[str, Any] = {}
    for name in MEASURES:
        whole = [float(np.mean(values)) for _, values in sorted(gaps[arm, name].items()) if len(values) == tasks]
        if whole:
            row |= {"task": ALL, "arm": arm, "seeds": len(whole), "baseline": rival}
            row[f"{name}_difference"] = compare(whole)
    return row
