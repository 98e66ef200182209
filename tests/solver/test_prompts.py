"""States of prompts as arrays: checked, grouped, and their terms laid out by n."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.solver.prompts import PromptStates, PromptTables, settled, terms_by_total
from rollwise.types import RollwiseError
from rollwise.utilities import Utility, get_utility


def test_single_numbers_stand_for_all_prompts():
    prompts = PromptStates.of([1.0, 2.0, 3.0], 1.0, 8, successes=[0, 1, 2])
    assert prompts.size == 3 and prompts.top == 10
    np.testing.assert_array_equal(prompts.room, [8, 8, 8])
    np.testing.assert_allclose(prompts.expected_cost, 1.0)


def test_a_rollout_costs_by_its_outcome():
    prompts = PromptStates.of(3.0, 1.0, 4, cost_success=100.0, cost_failure=300.0)
    assert prompts.expected_cost[0] == pytest.approx(150.0)
    assert prompts.at_cost(1.0).expected_cost[0] == 1.0


@given(st.lists(st.tuples(st.sampled_from([0.5, 1.0]), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_groups_are_exactly_the_prompts_in_equal_situations(rows):
    a, s, pending = (np.array(column) for column in zip(*rows))
    first, group, counts = PromptStates.of(a, 1.0, 8, successes=s, pending=pending).grouped()
    assert len(first) == len(set(rows)) and counts.sum() == len(rows)
    for i, j in zip(*np.triu_indices(len(rows))):
        assert (group[i] == group[j]) == (rows[i] == rows[j])
    assert [rows[i] for i in first[group]] == rows


def test_terms_lie_by_number_of_rollouts():
    utility = get_utility("sum_variance")
    terms = terms_by_total(utility, 5)
    assert terms.shape == (1, 6, 6)
    assert terms[0, 5, 2] == pytest.approx(utility.value([2], [3]))
    tables = PromptTables("mine", lambda n, kinds: kinds[:, None, None] * np.ones((n + 1, n + 1)), 2)
    np.testing.assert_array_equal(terms_by_total(tables, 3)[:, 3, 1], [0.0, 1.0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PromptStates.of([1.0, 2.0], [1.0] * 3, 4), "different lengths"),
        (lambda: PromptStates.of(0.0, 1.0, 4), "positive"),
        (lambda: PromptStates.of(1.0, np.nan, 4), "positive"),
        (lambda: PromptStates.of(1.0, 1.0, -1), "0 or more"),
        (
            lambda: terms_by_total(PromptTables("bad", lambda n, kinds: np.full((1, n + 1, n + 1), np.nan), 1), 3),
            "finite",
        ),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(RollwiseError, match=words):
        call()


def test_where_h_is_at_its_largest_for_good_is_found():
    for name, since, largest in [
        ("sum_max_reward", 1, 1.0),
        ("sum_variance", 10, 0.0),
        ("sum_squared_advantage", 10, 0.0),
    ]:
        found = settled(terms_by_total(get_utility(name), 9))
        assert (found[0][0], found[1][0]) == (since, largest)
    two = Utility.from_function(lambda s, f: np.minimum(s, 2) - 5.0, "sum")
    assert [x[0] for x in settled(terms_by_total(two, 9))] == [2, -3.0]
