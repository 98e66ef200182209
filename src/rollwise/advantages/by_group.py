"""Applying a function of one group's rewards to every group of a step."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from rollwise.advantages.base import Groups
from rollwise.types import FloatArray, IntArray


def apply_by_group(
    function: Callable[[FloatArray], FloatArray],
    rewards: FloatArray,
    group_ids: Sequence[Hashable],
    order: IntArray,
    least: int = 2,
) -> FloatArray:
    """(n,) `function` of each group's known rewards (k,), in order of issue; 0 where unknown or fewer than `least` known.

    Raises:
        ValueError: lengths that differ, or an infinite reward.
    """
    groups = Groups.of(rewards, group_ids)
    values = np.asarray(rewards, dtype=np.float64)
    found = np.zeros(len(values))
    by_issue = np.lexsort((np.asarray(order), groups.index))
    by_issue = by_issue[groups.known[by_issue]]
    ends = np.cumsum(groups.counts)
    for start, end in zip(ends - groups.counts, ends, strict=True):
        if end - start >= least:
            rows = by_issue[start:end]
            found[rows] = function(values[rows])
    return found
