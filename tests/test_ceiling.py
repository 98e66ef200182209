"""What allocation can save at most: the published table, and bounds that hold for any pool."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollwise.ceiling import ceiling
from rollwise.objectives import objective_utility
from rollwise.pool import Pool
from rollwise.solver import solve
from rollwise.types import RollwiseError


@pytest.mark.parametrize(
    ("prior", "objective", "oracle", "belief"),
    [
        ((1, 1), "mean", 0.925, 0.976),
        ((0.3, 1.5), "mean", 0.667, 0.854),
        ((1, 1), "pass@4", 0.531, 0.732),
    ],
)
def test_the_table(prior: tuple[float, float], objective: str, oracle: float, belief: float) -> None:
    found = ceiling(prior, objective, per_prompt=8)
    assert found.oracle == pytest.approx(oracle, abs=5e-4)
    assert found.belief == pytest.approx(belief, abs=5e-4)


@given(
    rates=st.lists(st.floats(0, 1), min_size=1, max_size=6),
    objective=st.sampled_from(["none", "log", "pass@4"]),
    per_prompt=st.integers(1, 10),
)
@settings(max_examples=40)
def test_knowing_more_saves_more_and_nothing_costs_extra(rates: list[float], objective: str, per_prompt: int) -> None:
    found = ceiling(Pool.histogram(rates, np.ones(len(rates))), objective, per_prompt)
    assert 0 <= found.oracle <= found.belief + 1e-9 <= 1 + 2e-9


def test_alike_prompts_leave_nothing_to_save() -> None:
    found = ceiling(Pool.histogram([0.3], [1]), "mean", 4)
    assert (found.oracle, found.belief) == (pytest.approx(1), pytest.approx(1))


def test_a_pool_that_teaches_nothing_leaves_nothing_to_save() -> None:
    found = ceiling(Pool.histogram([0.0, 1.0], [1, 1]), "mean")
    assert (found.oracle, found.belief) == (1.0, 1.0)


def test_two_kinds_of_prompt_by_hand() -> None:
    # half at 1/2, half hopeless: the oracle gives all rollouts to the first half and halves the variance
    found = ceiling(Pool.histogram([0.5, 0.0], [1, 1]), "mean")
    assert found.oracle == pytest.approx(0.5)
    assert 0.5 < found.belief < 1


def test_the_exact_optimum_of_a_small_step_stays_above_it() -> None:
    for prior in ((1.0, 1.0), (0.3, 1.5)):
        best = solve(objective_utility(prior, 1.0, 12), prompts=3, budget=12, prior=prior)
        assert ceiling(prior, "mean", 4).belief <= best.value / best.uniform_value < 1 + 1e-9


def test_a_cap_that_binds_raises_it() -> None:
    loose, tight = (ceiling((0.3, 1.5), "mean", 4, cap=cap).belief for cap in (64, 6))
    assert loose < tight < 1


@pytest.mark.parametrize(("per_prompt", "cap"), [(0, None), (8, 8)])
def test_budgets_that_make_no_sense_are_refused(per_prompt: int, cap: int | None) -> None:
    with pytest.raises(RollwiseError, match="^per_prompt: "):
        ceiling((1, 1), "mean", per_prompt, cap)
