"""Does a curator keep its contract?"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from rollwise.curators.base import NEEDS, Curated
from rollwise.testing.selectors import run_step
from rollwise.testing.states import carried_over, check_attributes, check_metrics
from rollwise.types import StepRecord, StoredRow

METHODS = ("curate", "metrics", "state_dict", "load_state_dict")


def check_curator(curator: Any, *, seed: int = 0, steps: int = 30, collects: bool = False) -> None:
    """Hand closed steps to `curator` and check what `rollwise.curators.base.Curator` promises.

    * a `name`, `needs`, `weighs_by`, `held`, finite `metrics()`;
    * rows that are ascending places of rollouts that train, a finite weight of at least 0 for each;
    * stored rollouts it had asked to hold, with an advantage or to be regrouped; no more rows than were generated, unless
      it `collects` several steps for one update;
    * the same state and generator, the same decision; records are left alone;
    * `state_dict` is plain data, and a run that resumes from it goes on with the same decisions.

    The curator must be unused.

    Raises:
        AssertionError: naming the promise and the step.
    """
    check_attributes(curator, "curator", METHODS, ("needs", "weighs_by", "held"), NEEDS)
    rng = np.random.default_rng(seed)
    unused, other = deepcopy(curator), deepcopy(curator)
    trains = 0
    for index in range(steps):
        size = int(rng.integers(1, 6))
        names = tuple(f"prompt-{place}" for place in rng.choice(8, size, replace=False))
        record = run_step(index, names, rng.choice([0.0, 1.0, *rng.random(4)], size), rng)
        where = f"curator {curator.name}, step {index}"
        held, before, key = curator.held, deepcopy(record), int(rng.integers(1 << 31))
        curated = curator.curate(record, np.random.default_rng(key))
        check_curated(curated, record, held, where, collects)
        assert same_record(record, before), f"{where}: changes the record it is shown; work on copies"
        again = other.curate(deepcopy(record), np.random.default_rng(key))
        assert same_decision(curated, again), (
            f"{where}: a copy with the same state decides otherwise; draw from the generator only"
        )
        check_metrics(curator, "curator")
        trains += len(curated.rows) + len(curated.stored)
        other = carried_over(curator, deepcopy(unused), "curator")
    assert trains, f"curator {curator.name}: trains on nothing in {steps} steps"


def check_curated(curated: Any, record: StepRecord, held: frozenset[str], where: str, collects: bool) -> None:
    """Raise AssertionError where a decision cannot be trained on."""
    assert isinstance(curated, Curated), f"{where}: curate gives {type(curated).__name__}, not Curated"
    rows, weights = np.asarray(curated.rows), np.asarray(curated.weights, dtype=np.float64)
    assert rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer), f"{where}: rows {rows} are no whole numbers (k,)"
    assert (np.diff(rows) > 0).all(), f"{where}: rows {rows} are not ascending"
    assert np.isin(rows, record.trained).all(), f"{where}: rows {rows} are not among those that train"
    assert weights.shape == rows.shape, f"{where}: weights of shape {weights.shape} for {len(rows)} rows"
    assert np.isfinite(weights).all() and (weights >= 0).all(), f"{where}: a weight is negative or not finite"
    for row in curated.stored:
        assert isinstance(row, StoredRow), f"{where}: stored holds {type(row).__name__}, not StoredRow"
        assert row in record.stored or row.rollout.id in held, (
            f"{where}: trains stored rollout {row.rollout.id!r}, which it did not ask to hold"
        )
        assert row.advantage is not None or curated.regroup, f"{where}: a stored row without advantage needs regroup"
    total = len(rows) + len(curated.stored)
    assert collects or total <= len(record.rollouts), (
        f"{where}: trains {total} rows where {len(record.rollouts)} were generated"
    )


def same_record(a: StepRecord, b: StepRecord) -> bool:
    """Whether two records hold the same rows, advantages, weights and counts."""
    arrays = ("counts", "successes", "failures", "unknown", "slots", "advantages", "weights", "trained")
    return (a.rollouts, a.stored) == (b.rollouts, b.stored) and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays
    )


def same_decision(a: Curated, b: Curated) -> bool:
    """Whether two decisions train the same rows with the same weights."""
    rows = np.array_equal(a.rows, b.rows) and np.array_equal(a.weights, b.weights)
    return rows and a.regroup == b.regroup and a.stored == b.stored
