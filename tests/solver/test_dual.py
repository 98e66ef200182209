"""The search for a price: certified from both sides, whatever the convex function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.solver.dual import find_price


def of_lines(lines):
    """sum_i max over lines of (worth - lam * spend), as prompts with a few plays each."""

    def evaluate(lam):
        worth = spend = 0.0
        for plays in lines:
            best = max(plays, key=lambda play: (play[0] - lam * play[1], -play[1]))
            worth += best[0] - lam * best[1]
            spend += best[1]
        return worth, spend

    return evaluate


plays = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), min_size=1, max_size=4)


@given(st.lists(plays.map(lambda x: [(0.0, 0), *x]), min_size=1, max_size=4), st.integers(0, 20))
def test_the_minimum_is_found_and_the_floor_lies_below_it(lines, budget):
    evaluate = of_lines(lines)
    found = find_price(evaluate, budget, -2.0, 2.0)
    corners = [(p[0] - q[0]) / (p[1] - q[1]) for row in lines for p in row for q in row if p[1] != q[1]]
    tries = [x for x in [*corners, -2.0, 2.0] if -2.0 <= x <= 2.0]
    least = min(evaluate(x)[0] + x * budget for x in tries)
    assert found.value == pytest.approx(least, abs=1e-8)
    assert found.floor <= least + 1e-9
    assert found.low <= found.high


def test_the_ends_spend_more_and_at_most_the_budget():
    evaluate = of_lines([[(0.0, 0), (0.5, 2), (0.6, 5)]] * 3)
    found = find_price(evaluate, 8, -1.0, 1.0)
    assert evaluate(found.low)[1] > 8 >= evaluate(found.high)[1]
    assert found.value == pytest.approx(3 * (0.5 - 2 * 0.1 / 3) + 8 * 0.1 / 3)


def test_slack_ends_the_search_early():
    tried = []

    def evaluate(lam):
        tried.append(lam)
        return float(np.exp(-lam)), float(np.exp(-lam))

    find_price(evaluate, 0.3, 0.0, 9.0, slack=0.05)
    few = len(tried)
    tried.clear()
    assert find_price(evaluate, 0.3, 0.0, 9.0).price == pytest.approx(-np.log(0.3), abs=1e-4)
    assert few < len(tried)


@given(st.floats(1e-4, 4.0), st.integers(1, 14))
def test_a_guess_changes_the_way_and_not_the_end(start, budget):
    evaluate = of_lines([[(0.0, 0), (0.5, 2), (0.6, 5)], [(0.0, 0), (0.3, 1), (0.55, 6)], [(0.1, 0), (0.15, 4)]])
    found, guessed = (find_price(evaluate, budget, 1e-6, 2.0, start=x) for x in (0.0, start))
    assert guessed.value == pytest.approx(found.value, abs=1e-8)
    assert guessed.low <= guessed.high and guessed.floor <= guessed.value
    assert guessed.low == 1e-6 or evaluate(guessed.low)[1] > budget
    assert evaluate(guessed.high)[1] <= budget or guessed.high == guessed.low
