"""pass@k, majority votes and intervals against enumeration and theory."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.tasks.scores import interval, majority_at_k, pass_at_k
from rollwise.types import RollwiseError

RNG = np.random.default_rng(0)


@given(st.integers(1, 8), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_success(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(itertools.combinations([1] * c + [0] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(subset) for subset in subsets) / len(subsets))


def test_pass_at_k_of_too_few_samples_does_not_exist_and_large_counts_stay_exact() -> None:
    assert math.isnan(pass_at_k(3, 1, 4))
    assert pass_at_k(10_000, 1, 100) == pytest.approx(0.01)
    for counts in ((2, 3, 1), (2, -1, 1), (2, 1, 0)):
        with pytest.raises(RollwiseError, match="cannot be"):
            pass_at_k(*counts)


@pytest.mark.parametrize(
    ("answers", "verdicts", "chance"),
    [
        (["1", "1", "2"], [1.0, 1.0, 0.0], 1.0),
        (["1", "2", "2"], [1.0, 0.0, 0.0], 0.0),
        (["1", "2"], [1.0, 0.0], 0.5),
        (["1", None, None], [1.0, 0.0, 0.0], 1.0),
        ([None, None], [0.0, 0.0], 0.0),
        (["1", "2", "2"], [1.0, math.nan, math.nan], 1.0),
    ],
)
def test_the_most_frequent_answer_wins_and_ties_are_shared(
    answers: list[str | None], verdicts: list[float], chance: float
) -> None:
    assert majority_at_k(answers, verdicts, len(answers), RNG) == chance


def test_a_majority_of_fewer_votes_is_the_mean_over_subsets() -> None:
    answers, verdicts = ["1", "1", "2", "3"], [1.0, 1.0, 0.0, 0.0]
    enumerated = np.mean(
        [
            majority_at_k([answers[i] for i in s], [verdicts[i] for i in s], 3, RNG)
            for s in itertools.combinations(range(4), 3)
        ]
    )
    assert majority_at_k(answers, verdicts, 3, np.random.default_rng(1)) == pytest.approx(enumerated, abs=0.06)
    assert math.isnan(majority_at_k(answers, verdicts, 5, RNG))
    assert math.isnan(majority_at_k(["1"], [math.nan], 1, RNG))


def test_an_interval_is_that_of_the_mean_over_prompts() -> None:
    values = np.random.default_rng(2).integers(0, 2, 400).astype(float)
    low, high = interval(np.append(values, np.nan))
    error = values.std() / 20
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)
    assert interval(np.ones(5)) == (1.0, 1.0)
    assert all(math.isnan(bound) for bound in interval(np.array([1.0, np.nan])))
