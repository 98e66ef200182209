"""Sums over paths: deep sizes and extreme beliefs stay exact, and too deep is refused."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.solver.betabinomial import beta_binomial
from rollwise.solver.last import expected_terms
from rollwise.solver.prompts import PromptStates, terms_by_total
from rollwise.solver.sweeps import DEEPEST, count_paths
from rollwise.solver.waves import value_waves
from rollwise.types import RollwiseError
from rollwise.utilities import get_utility

BELIEFS = np.array([(1e-6, 1e-6), (1e-3, 1e6), (1.0, 1.0), (1e3, 1e6), (1e6, 1e6), (1e10, 1e10), (3e2, 2.0)])


@pytest.mark.parametrize("deep", [65, 301, 1000])
def test_one_wave_is_the_expectation_however_deep_and_whatever_the_belief(deep):
    """Chances span e^(+-deep), beyond any float where they are not scaled."""
    utility = get_utility("sum_squared_advantage")
    prompts = PromptStates.of(*BELIEFS.T, deep, successes=1, failures=2)
    terms, sizes = terms_by_total(utility, deep + 3), np.array([0, 1, deep // 2, deep])
    by_sweeps = value_waves(prompts, terms, sizes, 1, 0.0).worth
    by_sums = expected_terms(utility, prompts, deep)[:, sizes]
    for i, (a, b) in enumerate(BELIEFS):
        for column, k in enumerate(sizes):
            j = np.arange(k + 1)
            expected = beta_binomial(int(k), a + 1, b + 2) @ terms[0, 3 + k, 1 + j]
            assert by_sweeps[i, column] == pytest.approx(expected, rel=1e-10)
            assert by_sums[i, column] == pytest.approx(expected, rel=1e-10)


def test_paths_are_counted():
    np.testing.assert_array_equal(count_paths((1, 4))[1], np.array([1, 4, 6, 4, 1]) / 4)


def test_sizes_too_deep_for_floats_are_refused():
    with pytest.raises(RollwiseError, match="max_per_prompt"):
        value_waves(PromptStates.of(1.0, 1.0, 3), np.zeros((1, 4, 4)), np.array([0, DEEPEST + 1]), 2, 0.0)
