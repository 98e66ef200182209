"""Beta-binomial chances: against exact fractions, over the whole range of priors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import outcome_chance

from rollwise.solver.betabinomial import beta_binomial, log_beta_binomial
from rollwise.types import RollwiseError


@given(st.integers(0, 64), st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_chances_sum_to_one_and_have_the_mean_of_the_belief(k, alpha, beta):
    chances = beta_binomial(k, alpha, beta)
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    assert chances @ np.arange(k + 1) == pytest.approx(k * alpha / (alpha + beta), rel=1e-10, abs=1e-12)


@given(st.integers(1, 20), st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_they_are_products_of_posterior_means(k, alpha, beta):
    expected = [outcome_chance(j, k, alpha, beta) for j in range(k + 1)]
    np.testing.assert_allclose(beta_binomial(k, alpha, beta), expected, rtol=1e-11)


def test_large_priors_keep_twelve_digits():
    a, b, k = 10**6, 3 * 10**5, 12
    exact = Fraction(1)
    for i in range(k):
        exact *= Fraction(a + i, a + b + i)
    assert log_beta_binomial(k, a, b)[-1] == pytest.approx(np.log(float(exact)), rel=1e-12)


def test_no_rollouts_are_certain_to_bring_no_success():
    np.testing.assert_array_equal(beta_binomial(0, 2.0, 3.0), [1.0])


@pytest.mark.parametrize(("k", "alpha", "words"), [(-1, 1.0, "k -1"), (3, 0.0, "Beta"), (3, np.inf, "Beta")])
def test_arguments_out_of_range_are_named(k, alpha, words):
    with pytest.raises(RollwiseError, match=words):
        beta_binomial(k, alpha, 1.0)
