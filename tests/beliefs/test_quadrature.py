"""Expectations under a Beta against closed forms, for tame and for extreme priors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rollwise.beliefs import beta_nodes


@pytest.mark.parametrize("a", [1e-3, 0.3, 1.0, 50.0, 1e6])
@pytest.mark.parametrize("b", [1e-3, 1.5, 1e6])
def test_moments_are_those_of_the_beta(a: float, b: float) -> None:
    p, w = beta_nodes(a, b)
    assert w.sum() == pytest.approx(1) and (w >= 0).all() and ((p > 0) & (p < 1)).all()
    for k in (1, 2, 5, 30):
        exact = math.exp(sum(math.log(a + j) - math.log(a + b + j) for j in range(k)))
        assert w @ p**k == pytest.approx(exact, rel=1e-5, abs=1e-13)
    assert w @ (p * (1 - p)) == pytest.approx(a * b / ((a + b) * (a + b + 1)), rel=1e-5, abs=1e-13)


def test_a_posterior_far_from_the_prior_keeps_its_mean() -> None:
    p, w = beta_nodes(50.0, 1.0)
    posterior = w * (1 - p) ** 64
    assert posterior @ p / posterior.sum() == pytest.approx(50 / 115, rel=1e-6)


def test_arrays_handed_out_cannot_be_changed() -> None:
    p, _ = beta_nodes(1.0, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        p[0] = 0.5
    assert np.isfinite(p).all()
