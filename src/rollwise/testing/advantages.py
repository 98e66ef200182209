"""Does an estimator keep the advantage contract?"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollwise.types import FloatArray, IntArray

NEAR = 1e-8


@dataclass(frozen=True)
class Rows:
    """Rows of a step: rewards, group ids, beliefs at issue and order of issue, each of length n."""

    rewards: FloatArray
    groups: tuple[Hashable, ...]
    beliefs: FloatArray
    order: IntArray

    def take(self, places: IntArray) -> Rows:
        """These rows at `places` (m,), each with its own place in the order of issue."""
        groups = tuple(self.groups[place] for place in places)
        return Rows(self.rewards[places], groups, self.beliefs[places], self.order[places])

    def __str__(self) -> str:
        return f"rewards {self.rewards.tolist()}, groups {list(self.groups)}"


def check_advantage(estimator: Any, *, seed: int = 0, situations: int = 100) -> None:
    """Check what `rollwise.advantages.Advantage` promises on small steps with unequal groups.

    * a `name`; one finite number per row; inputs left alone; the same answer again;
    * unknown rewards (NaN) get 0 and change nothing for the others;
    * groups go by their id: permuted rows give permuted advantages, and renamed groups the same;
    * no rows, no advantages; wrong lengths and infinite rewards raise ValueError.

    Raises:
        AssertionError: naming the promise and the rows.
    """
    assert isinstance(getattr(estimator, "name", None), str) and estimator.name, "name: give the estimator a name"
    rng = np.random.default_rng(seed)
    for index in range(situations):
        check_rows(estimator, draw_rows(rng, shaped=index % 3 == 2), rng)
    nothing = Rows(np.zeros(0), (), np.ones((0, 2)), np.arange(0))
    assert apply(estimator, nothing).shape == (0,), f"{estimator.name}: no rows must give no advantages"
    for fault, rewards in (
        ("fewer group ids than rewards", np.zeros(3)),
        ("an infinite reward", np.array([np.inf, 0.0])),
    ):
        try:
            estimator(rewards, ["a", "a"], np.ones((len(rewards), 2)), np.arange(len(rewards)))
        except ValueError:
            continue
        raise AssertionError(f"{estimator.name}: {fault} must raise ValueError")


def check_rows(estimator: Any, rows: Rows, rng: np.random.Generator) -> None:
    """The promises on one set of rows."""
    name = estimator.name
    kept = Rows(rows.rewards.copy(), rows.groups, rows.beliefs.copy(), rows.order.copy())
    found = apply(estimator, rows)
    assert found.shape == rows.rewards.shape, f"{name}: shape {found.shape} for {len(rows.rewards)} rows"
    assert np.isfinite(found).all(), f"{name}: {found} is not finite [{rows}]"
    same = (np.array_equal(a, b, equal_nan=True) for a, b in zip(_arrays(rows), _arrays(kept), strict=True))
    assert all(same), f"{name}: changes its inputs; work on copies"
    assert np.array_equal(found, apply(estimator, rows)), f"{name}: two answers for the same rows [{rows}]"
    known = ~np.isnan(rows.rewards)
    assert (found[~known] == 0).all(), f"{name}: an unknown reward must have advantage 0 [{rows}]"
    without = apply(estimator, rows.take(np.flatnonzero(known)))
    assert np.allclose(found[known], without, atol=NEAR), f"{name}: unknown rewards move the others [{rows}]"
    places = rng.permutation(len(rows.rewards))
    permuted = apply(estimator, rows.take(places))
    assert np.allclose(permuted, found[places], atol=NEAR), (
        f"{name}: permuted rows must give permuted advantages; group by id and order of issue, not by position [{rows}]"
    )
    renamed = Rows(rows.rewards, tuple((group, "again") for group in rows.groups), rows.beliefs, rows.order)
    assert np.allclose(apply(estimator, renamed), found, atol=NEAR), (
        f"{name}: depends on what groups are called [{rows}]"
    )


def draw_rows(rng: np.random.Generator, shaped: bool = False) -> Rows:
    """Up to 24 rows in up to 5 groups, interleaved, a fifth of them unknown; rewards 0 and 1, or any if `shaped`."""
    size = int(rng.integers(1, 25))
    rewards = rng.normal(0, 2, size).round(1) if shaped else rng.integers(0, 2, size).astype(np.float64)
    rewards[rng.random(size) < 0.2] = np.nan
    names: tuple[Hashable, ...] = ("a", "b", 3, ("c", 1), "dd")
    groups = tuple(names[k] for k in rng.integers(0, rng.integers(1, 6), size))
    return Rows(rewards, groups, rng.uniform(0.5, 5, (size, 2)), np.arange(size))


def apply(estimator: Any, rows: Rows) -> FloatArray:
    """(n,) its advantages."""
    return np.asarray(estimator(rows.rewards, list(rows.groups), rows.beliefs, rows.order))


def _arrays(rows: Rows) -> tuple[np.ndarray, ...]:
    return rows.rewards, rows.beliefs, rows.order
