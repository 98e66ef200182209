"""The exact optimum under different priors: against a naive recursion and against the table of shared ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import optimum

from rollwise.solver import solve
from rollwise.solver.ordered import count_ordered, solve_ordered
from rollwise.solver.prompts import PromptStates
from rollwise.types import RollwiseError
from rollwise.utilities import UTILITIES, Utility, get_utility


@settings(max_examples=40)
@given(st.data())
def test_it_is_the_naive_optimum_under_any_priors_caps_and_tables(data):
    size = data.draw(st.integers(1, 3))
    budget = data.draw(st.integers(1, 5))
    priors = [(data.draw(st.floats(0.01, 50)), data.draw(st.floats(0.01, 50))) for _ in range(size)]
    caps = [data.draw(st.integers(-(-budget // size), budget)) for _ in range(size)]
    kind = data.draw(st.sampled_from(["sum", "min"]))
    values = data.draw(st.lists(st.floats(-1, 1), min_size=(budget + 1) ** 2, max_size=(budget + 1) ** 2))
    table = np.reshape(values, (budget + 1, budget + 1))
    found = solve_ordered(Utility.from_table(table, kind), PromptStates.of(*np.transpose(priors), caps), budget)
    best = optimum(lambda s, f: table[s, f], kind, priors, budget, caps)
    assert found.value == pytest.approx(best, abs=1e-10)
    assert found.gains.max() == found.value >= found.uniform - 1e-12


@pytest.mark.parametrize("name", UTILITIES)
def test_a_shared_prior_agrees_with_the_exact_table(name):
    solved = solve(name, 3, 9, (0.5, 2.0))
    found = solve_ordered(get_utility(name), PromptStates.of([0.5] * 3, 2.0, 9), 9)
    assert (found.value, found.uniform) == pytest.approx((solved.value, solved.uniform_value), abs=1e-12)
    assert found.states == count_ordered(3, 9) == 5005
    s, f = [1, 0, 2], [0, 1, 0]
    later = solve_ordered(get_utility(name), PromptStates.of([0.5] * 3, 2.0, 9, successes=s, failures=f), 5)
    assert later.value == pytest.approx(solved.value_at(s, f), abs=1e-12)
    assert later.action(np.array([1, 1, 2])) == solved.action(s, f)


def test_what_is_too_large_is_refused_with_what_to_use_instead():
    with pytest.raises(RollwiseError, match="price bound"):
        solve_ordered(get_utility("sum_variance"), PromptStates.of(np.ones(4), 1.0, 32), 32)
    with pytest.raises(RollwiseError, match="n_max"):
        solve_ordered(get_utility("sum_variance"), PromptStates.of(np.ones(2), 1.0, 1), 3)
