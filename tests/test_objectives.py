"""Objectives as weights on beliefs, and the variance they leave for the allocator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.objectives import (
    expected_weight,
    get_objective,
    objective_table,
    objective_utility,
    objective_weights,
    weighs_twice,
)
from rollwise.solver import solve
from rollwise.types import RollwiseError

INSIDE = np.linspace(0.06, 0.99, 40)


def favour_hard(p: np.ndarray) -> np.ndarray:
    """A user's curve."""
    return 2 * (1 - p)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean", lambda p: p),
        ("log", np.log),
        ("pass@1", lambda p: p),
        ("pass@4", lambda p: 1 - (1 - p) ** 4),
        ("pass@64", lambda p: 1 - (1 - p) ** 64),
    ],
)
def test_the_weight_is_the_slope_of_the_objective(name: str, value: Any) -> None:
    slope = (value(INSIDE + 1e-6) - value(INSIDE - 1e-6)) / 2e-6
    assert get_objective(name).weight(INSIDE) == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_log_is_clipped_where_a_rate_is_hardly_ever_seen() -> None:
    assert get_objective("log").weight([0.0, 0.05, 0.1, 1.0]).tolist() == [20, 20, 10, 1]


def test_a_user_gives_a_function_or_its_path() -> None:
    for curve in (favour_hard, "test_objectives:favour_hard", "tests.test_objectives:favour_hard"):
        try:
            found = get_objective(curve)
        except RollwiseError as error:  # which of the two paths works depends on how pytest was started
            assert "no module" in str(error)
            continue
        assert found.weight([0.0, 0.25]).tolist() == [2.0, 1.5]
    assert get_objective(favour_hard).name == "favour_hard"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("lgo", "did you mean 'log'"),
        ("pass@0", "such as pass@4"),
        ("pass@x", "such as pass@4"),
        ("absent.module:curve", "no module 'absent'"),
        ("rollwise.objectives:LOG_FLOOR", "has no function 'LOG_FLOOR'"),
        (4, "valid: "),
        (lambda p: 1 / p, "not finite"),
        (lambda p: p - 0.5, "negative"),
        (lambda p: 1.0, "vectorise"),
        (lambda p: 1.0 if p > 0.5 else 0.0, "vectorise"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_anything_else_is_refused_naming_the_objective(given: Any, line: str) -> None:
    with pytest.raises(RollwiseError, match=f"^objective: .*{line}"):
        get_objective(given)


beliefs = st.lists(st.tuples(st.floats(0.1, 50), st.floats(0.1, 50)), min_size=1, max_size=12)


@given(pairs=beliefs, name=st.sampled_from(["none", "mean", "log", "pass@4"]))
def test_weights_follow_the_beliefs_mean_and_average_one(pairs: Any, name: str) -> None:
    held = np.array(pairs)
    weights = objective_weights(name, held)
    assert weights.mean() == pytest.approx(1)
    plain = objective_weights(name, held, normalise=False)
    assert plain == pytest.approx(get_objective(name).weight(held[:, 0] / held.sum(axis=1)))
    assert weights == pytest.approx(plain / plain.mean())


def test_under_one_prior_every_weight_is_one() -> None:
    assert objective_weights("log", np.ones((5, 2))).tolist() == [1.0] * 5


def test_where_nothing_can_be_ascended_the_weights_are_zero() -> None:
    assert objective_weights(lambda p: np.zeros_like(p), np.ones((3, 2))).tolist() == [0, 0, 0]


def test_beliefs_of_another_shape_are_refused() -> None:
    with pytest.raises(RollwiseError, match=r"give \(B, 2\)"):
        objective_weights("log", np.ones(4))


@pytest.mark.parametrize(
    ("name", "asked", "first_group", "later"), [("log", 20, 4.9, 14.1), ("pass@4", 3.43, 1.79, 3.17)]
)
def test_a_belief_applies_less_than_was_asked_for(name: str, asked: float, first_group: float, later: float) -> None:
    assert get_objective(name).weight(0.05) == pytest.approx(asked, abs=0.005)
    # weight at the belief each of the first 8 rollouts was issued under, on the average
    group = np.mean([expected_weight(name, 0.05, earlier=n) for n in range(8)])
    assert group == pytest.approx(first_group, abs=0.05 if name == "log" else 0.005)
    assert expected_weight(name, 0.05, earlier=32)[0] == pytest.approx(later, abs=0.05 if name == "log" else 0.005)


def test_expected_weight_agrees_with_drawn_beliefs() -> None:
    s = np.random.default_rng(0).binomial(12, 0.3, size=200_000)
    drawn = get_objective("pass@4").weight((2 + s) / (5 + 12))
    found = expected_weight("pass@4", [0.3, 0.0, 1.0], prior=(2, 3), earlier=12)
    assert found[0] == pytest.approx(drawn.mean(), abs=4 * drawn.std() / np.sqrt(len(s)))
    assert found[1:] == pytest.approx([4 * (15 / 17) ** 3, 4 * (3 / 17) ** 3])


def test_the_table_by_hand() -> None:
    h = objective_table(1, 1, 3.0, 2)
    # Beta(2,1): E[pq] = 2/12; Beta(3,1): 3/20; Beta(2,2): 4/20; w^2 = 9
    assert h[1, 0] == pytest.approx(-9 * (2 / 12))
    assert h[2, 0] == pytest.approx(-9 * (3 / 20) / 2)
    assert h[1, 1] == pytest.approx(-9 * (4 / 20) / 2)
    assert h[0, 0] == -18 and h[2, 1] == h[2, 2] == 0
    group_mean = objective_table(1, 1, 3.0, 2, n_min=2)
    assert group_mean[1, 1] == pytest.approx(-9 * (4 / 20)) and group_mean[1, 0] == -18 and group_mean[0, 0] == -27


@given(a=st.floats(0.05, 30), b=st.floats(0.05, 30), w=st.floats(0.1, 5), n_min=st.integers(1, 2))
def test_one_more_rollout_gains_what_the_formula_says(a: float, b: float, w: float, n_min: int) -> None:
    h = objective_table(a, b, w, 12, n_min)
    for s, f in ((1, 1), (0, 3), (4, 2)):
        n, x, y = s + f, a + s, b + f
        gain = (x * h[s + 1, f] + y * h[s, f + 1]) / (x + y) - h[s, f]
        # E[pq] at the end keeps its mean, so only 1/n changes
        seen = x * y / ((x + y) * (x + y + 1))
        m = n - n_min + 1
        assert gain == pytest.approx(w**2 * seen / (m * (m + 1)), rel=1e-9)


def test_prompts_are_broadcast_and_a_constant_objective_is_its_weight() -> None:
    a, b, w = np.array([1.0, 0.3]), np.array([1.0, 1.5]), np.array([1.0, 2.0])
    tables = objective_table(a, b, w, 6)
    assert tables.shape == (2, 7, 7)
    for k in range(2):
        assert tables[k] == pytest.approx(objective_table(a[k], b[k], w[k], 6))
    exact = objective_table(a, b, get_objective("mean"), 6)[:, 1:]
    assert exact == pytest.approx(objective_table(a, b, 1.0, 6)[:, 1:], abs=1e-12)


def test_a_weight_as_uncertain_as_the_rate_is_integrated_over_it() -> None:
    a, b, k = 2.0, 3.0, 4
    h = objective_table(a, b, get_objective(f"pass@{k}"), 3)
    rng = np.random.default_rng(0)
    for s, f in ((1, 0), (1, 2)):
        p = rng.beta(a + s, b + f, size=400_000)
        drawn = -((k * (1 - p) ** (k - 1)) ** 2) * p * (1 - p) / (s + f)
        assert h[s, f] == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 632)


def test_the_exact_solver_takes_it_and_beats_uniform_where_prompts_differ_enough() -> None:
    flat = solve(objective_utility((1, 1), 1.0, 12), prompts=3, budget=12)
    # E[pq] after 4 rollouts differs by less than 5/3 between prompts: levelling up is optimal
    assert flat.value == pytest.approx(flat.uniform_value) == pytest.approx(-3 * (1 / 6) / 4)
    skewed = solve(objective_utility((0.3, 1.5), 1.0, 12), prompts=3, budget=12, prior=(0.3, 1.5))
    assert skewed.uniform_value == pytest.approx(-3 * 0.45 / (1.8 * 2.8) / 4)
    assert skewed.value > 0.97 * skewed.uniform_value
    hard = solve(objective_utility((1, 1), get_objective("pass@4"), 12), prompts=3, budget=12)
    assert hard.value > 0.95 * hard.uniform_value


@pytest.mark.parametrize(("n_max", "n_min"), [(4, 0), (4, 3), (1, 2)])
def test_table_sizes_that_make_no_sense_are_refused(n_max: int, n_min: int) -> None:
    with pytest.raises(RollwiseError, match="^n_min: "):
        objective_table(1, 1, 1.0, n_max, n_min)


def test_weighing_twice_is_said() -> None:
    assert "weighs twice" in str(weighs_twice("log", "grpo"))
    assert weighs_twice("none", "grpo") is None and weighs_twice("log", "dr_grpo") is None
