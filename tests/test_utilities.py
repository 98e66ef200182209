"""The six utilities against their definitions, computed from explicit rewards; user-defined ones; messages."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from rollwise.types import RollwiseError
from rollwise.utilities import UTILITIES, Utility, get_utility


def rewards(s: int, f: int) -> np.ndarray:
    return np.array([1.0] * s + [0.0] * f)


def by_definition(name: str, form: str, s: int, f: int) -> float:
    r = rewards(s, f)
    if s + f == 0:
        return 0.0
    if name.endswith("max_reward"):
        return float(r.max())
    if name.endswith("variance"):
        return float(r.var())
    centred = r - r.mean()
    if form == "raw":
        return float((centred**2).sum())
    return float(((centred / r.std()) ** 2).sum()) if r.std() > 0 else 0.0


@pytest.mark.parametrize("form", ["raw", "normalised"])
@pytest.mark.parametrize("name", UTILITIES)
def test_terms_follow_the_definition_on_explicit_rewards(name, form):
    table = get_utility(name, form).table(9)
    for s in range(10):
        for f in range(10 - s):
            assert table[s, f] == pytest.approx(by_definition(name, form, s, f), abs=1e-12)


def test_table_is_zero_beyond_n_max():
    table = get_utility("sum_max_reward").table(3)
    assert table.shape == (4, 4)
    assert table[3, 3] == 0.0 and table[2, 2] == 0.0 and table[2, 1] == 1.0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("min_variance", 0.0),
        ("sum_variance", 0.25 + 2 / 9),
        ("sum_max_reward", 3.0),
        ("min_max_reward", 1.0),
        ("sum_squared_advantage", 0.5 + 2 / 3),
        ("min_squared_advantage", 0.0),
    ],
)
def test_value_combines_prompts_by_sum_or_minimum(name, expected):
    assert get_utility(name).value([1, 1, 2], [1, 2, 0]) == pytest.approx(expected)


def test_value_is_vectorised_over_leading_axes():
    values = get_utility("sum_variance").value([[1, 0], [1, 1]], [[1, 0], [1, 1]])
    np.testing.assert_allclose(values, [0.25, 0.5])


@pytest.mark.parametrize("name", UTILITIES)
def test_only_the_maximum_reward_utilities_are_asymmetric(name):
    assert get_utility(name).symmetric is ("max_reward" not in name)
    assert get_utility(name, "normalised").symmetric is ("max_reward" not in name)


def test_user_table_and_function_agree_and_share_a_digest():
    table = np.fromfunction(lambda s, f: s - 0.5 * f, (5, 5))
    from_table = Utility.from_table(table, "sum")
    from_function = Utility.from_function(lambda s, f: s - 0.5 * f, "sum")
    np.testing.assert_array_equal(from_table.table(4), from_function.table(4))
    assert from_table.digest(4) == from_function.digest(4)
    assert from_table.digest(4) != Utility.from_table(table, "min").digest(4)
    assert not from_table.symmetric


def test_user_table_is_copied_and_survives_pickling():
    table = np.ones((3, 3))
    utility = Utility.from_table(table, "min", name="flat")
    table[:] = 7.0
    assert pickle.loads(pickle.dumps(utility)) == utility
    assert utility.value([0, 1], [1, 1]) == 1.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: get_utility("min_varience"), ["'min_varience'", "'min_variance'"]),
        (lambda: get_utility("zzz"), ["'zzz'", "valid: min_max_reward"]),
        (lambda: get_utility("min_variance", "normalized"), ["advantage_form", "'normalised'"]),
        (lambda: Utility.from_table(np.zeros((2, 3)), "sum"), ["square"]),
        (lambda: Utility.from_table([[0.0, np.nan], [1.0, 0.0]], "sum"), ["finite"]),
        (lambda: Utility.from_table(np.zeros((2, 2)), "mean"), ["'mean'", "sum"]),
        (lambda: Utility.from_table(np.zeros((2, 2)), "sum").table(2), ["n = 1", "n = 2"]),
        (lambda: Utility.from_function(lambda s, f: s / 0.0 + np.inf, "sum").table(2), ["finite"]),
        (lambda: Utility.from_function(lambda s, f: np.zeros(1), "sum").table(2), ["shape"]),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_mistakes_are_one_line_that_names_the_setting(make, words):
    with pytest.raises(RollwiseError) as caught:
        make()
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)
