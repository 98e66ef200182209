"""Results of arms as a comparison: means with standard errors, differences to a baseline, and shares of the bound."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.simulate.bounds import LARGEST, exact_optimum, pool_bound
from rollwise.simulate.measures import cap_of
from rollwise.simulate.pools import parse_pool
from rollwise.types import FloatArray, RollwiseError
from rollwise.utilities import UTILITIES, get_utility

Row = dict[str, Any]
ENOUGH_SEEDS = 10
_DRAWS = 2000
_POWER = 1.959964 + 0.841621


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error, NaN where one seed on a population leaves it unknown."""

    mean: float
    error: float


@dataclass(frozen=True)
class Difference:
    """Method minus baseline on the same seeds: mean, a 95 % bootstrap interval over seeds, and the number of seeds a
    difference of this size needs to show (two-sided 5 %, power 80 %); NaN with fewer than two seeds."""

    mean: float
    low: float
    high: float
    seeds: int
    seeds_needed: float


def by_setting(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """Rows by setting (as JSON) and method, in order of first occurrence."""
    found: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        found.setdefault(json.dumps(row["setting"], sort_keys=True), {}).setdefault(row["method"], []).append(row)
    return found


def estimate(rows: Sequence[Row], metric: str) -> Estimate:
    """Mean of a metric over the arms of one method.

    With `ENOUGH_SEEDS` seeds, or prompts that are met again, the error is that over seeds; else steps on new prompts are
    independent and their deviations within arms say more.

    Raises:
        RollwiseError: a metric that was not measured.
    """
    if metric not in rows[0]["means"]:
        raise RollwiseError(f"metric: no {metric!r}; measured: {', '.join(sorted(rows[0]['means']))}")
    means = np.array([row["means"][metric] for row in rows])
    setting = rows[0]["setting"]
    dependent = setting["population"] or setting["replay"] or rows[0]["steps"] < 2
    if len(rows) >= ENOUGH_SEEDS or (dependent and len(rows) > 1):
        error = float(means.std(ddof=1) / np.sqrt(len(rows)))
    elif dependent:
        error = float("nan")
    else:
        variances = [row["deviations"][metric] ** 2 / row["steps"] for row in rows]
        error = float(np.sqrt(sum(variances))) / len(rows)
    return Estimate(float(means.mean()), error)


def difference(rows: Sequence[Row], baseline: Sequence[Row], metric: str) -> Difference:
    """Paired difference over the seeds both have.

    Raises:
        RollwiseError: no seed in common.
    """
    base = {row["seed"]: row["means"][metric] for row in baseline}
    pairs = np.array([row["means"][metric] - base[row["seed"]] for row in rows if row["seed"] in base])
    if not len(pairs):
        raise RollwiseError("baseline: it shares no seed with the method; run both on the same seeds")
    low, high = bootstrap(pairs)
    mean, seeds = float(pairs.mean()), len(pairs)
    needed = float("nan")
    if seeds > 1:
        deviation = float(pairs.std(ddof=1))
        needed = max(2.0, float(np.ceil((_POWER * deviation / mean) ** 2))) if mean else float("inf")
    return Difference(mean, low, high, seeds, needed)


def bootstrap(values: FloatArray, draws: int = _DRAWS) -> tuple[float, float]:
    """95 % percentile interval of the mean of `values` (S,); always the same for the same values."""
    if len(values) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(len(values))
    means = values[rng.integers(len(values), size=(draws, len(values)))].mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def utilities_table(methods: dict[str, list[Row]]) -> dict[str, Any]:
    """What each method reaches of each published utility (raw form), beside what anyone can.

    For every utility: `bound` and `optimum` (None where unknown; both for new prompts drawn from the pool, true verdicts
    and no loss) and per method `mean`, `error` and `share`, of the optimum where that is known, else of the bound.
    """
    setting = next(iter(methods.values()))[0]["setting"]
    known = not (setting["population"] or setting["replay"] or any(map(bool, setting["imperfections"].values())))
    pool = parse_pool(setting["pool"])
    sizes = (setting["prompts"], setting["budget"], setting["n_max"])
    bounded = known and cap_of(setting["n_max"], setting["budget"]) <= LARGEST
    found = {}
    for name in UTILITIES:
        utility = get_utility(name)
        bound = pool_bound(utility, pool, *sizes) if bounded else None
        optimum = exact_optimum(utility, pool, *sizes) if known else None
        best = optimum if optimum is not None else bound
        entries = {}
        for label, rows in methods.items():
            reached = estimate(rows, name)
            share = reached.mean / best if best else None
            entries[label] = {"mean": reached.mean, "error": reached.error, "share": share}
        found[name] = {"bound": bound, "optimum": optimum, "methods": entries}
    return found


def flatten(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One flat record per arm, for a data frame."""
    return [
        {"method": row["method"], "seed": row["seed"], "paid": row["paid"], "seconds": row["seconds"]}
        | {f"setting.{key}": json.dumps(value) for key, value in row["setting"].items()}
        | row["means"]
        for row in rows
    ]


def write_parquet(rows: Sequence[Row], path: str | Path) -> Path:
    """Write `flatten(rows)` as parquet.

    Raises:
        RollwiseError: pandas or pyarrow is not installed.
    """
    try:
        import pandas

        pandas.DataFrame(flatten(rows)).to_parquet(path)
    except ImportError as error:
        raise RollwiseError(
            f"parquet: {error.name or 'pyarrow'} is not installed; pip install 'rollwise[train]'"
        ) from None
    return Path(path)
