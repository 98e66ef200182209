"""Sharing out: proportional, whole, within bounds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollwise.allocators.blocks import split_budget, split_slots


@pytest.mark.parametrize(
    ("size", "most", "sizes"), [(8, 4, [4, 4]), (9, 4, [3, 3, 3]), (5, 4, [3, 2]), (3, 4, [3]), (7, 1, [1] * 7)]
)
def test_blocks_are_consecutive_and_as_equal_as_possible(size, most, sizes):
    blocks = split_slots(size, most)
    assert [block.stop - block.start for block in blocks] == sizes
    assert [slot for block in blocks for slot in range(block.start, block.stop)] == list(range(size))


@pytest.mark.parametrize(
    ("total", "weights", "expected"),
    [(72, [3, 3, 3], [24, 24, 24]), (40, [3, 2], [24, 16]), (41, [3, 2], [25, 16]), (7, [1, 1, 1], [3, 2, 2])],
)
def test_largest_remainders_are_rounded_up(total, weights, expected):
    given = split_budget(total, weights, np.zeros(len(weights)), np.full(len(weights), total))
    assert given.tolist() == expected


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_shares_are_whole_bounded_and_complete(data):
    size = data.draw(st.integers(1, 5))
    draw = lambda low, high: np.array(data.draw(st.lists(st.integers(low, high), min_size=size, max_size=size)))  # noqa: E731
    weights, lower = draw(1, 9), draw(0, 6)
    upper = lower + draw(0, 6)
    total = data.draw(st.integers(int(lower.sum()), int(upper.sum())))
    given = split_budget(total, weights, lower, upper)
    assert given.sum() == total and (given >= lower).all() and (given <= upper).all()
    # Nothing can be moved towards proportion: whoever is ahead per weight by more than a rollout sits on a bound.
    for i, j in product(range(size), repeat=2):
        if given[i] > lower[i] and given[j] < upper[j] and i != j:
            assert (given[i] - 1) * weights[j] <= (given[j] + 1) * weights[i]
