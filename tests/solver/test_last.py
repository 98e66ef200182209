"""The last wave: the best split of what is left, concave or not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import outcome_chance

from rollwise.solver.last import _climb, expected_terms, fill_last
from rollwise.solver.prompts import PromptStates
from rollwise.types import RollwiseError
from rollwise.utilities import Utility, get_utility


def hope(h, a, b, s, f, k):
    return sum(outcome_chance(j, k, a + s, b + f) * h(s + j, f + k - j) for j in range(k + 1))


@settings(max_examples=60)
@given(st.data())
def test_no_split_is_worth_more(data):
    """Random tables are anything but concave; every split is tried."""
    size, share = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 6))
    seen = [data.draw(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))) for _ in range(size)]
    s, f, pending = np.transpose(seen)
    room = np.array([data.draw(st.integers(0, 6)) for _ in range(size)])
    room[0] += max(0, share - room.sum())
    top = int((s + f + pending + room).max())
    values = data.draw(st.lists(st.floats(-1, 1), min_size=(top + 1) ** 2, max_size=(top + 1) ** 2))
    table = np.reshape(values, (top + 1, top + 1))
    a, b = (np.array([data.draw(st.sampled_from([0.3, 1.0, 4.0])) for _ in range(size)]) for _ in range(2))
    prompts = PromptStates.of(a, b, room, successes=s, failures=f, pending=pending)
    given_ = fill_last(Utility.from_table(table, "sum"), prompts, share)
    assert given_.sum() == share and (given_ >= 0).all() and (given_ <= room).all()

    def worth(k):
        return sum(
            hope(lambda x, y: table[x, y], *state, q + n) for *state, q, n in zip(a, b, s, f, pending, k, strict=True)
        )

    splits = [k for k in product(*(range(n + 1) for n in room)) if sum(k) == share]
    assert worth(given_) == pytest.approx(max(map(worth, splits)), abs=1e-9)


@pytest.mark.parametrize(("name", "least"), [("sum_max_reward", 1), ("sum_variance", 2)])
@pytest.mark.parametrize("per_prompt", [1, 2, 3, 5, 8, 12.6])
@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 2.0), (3.0, 3.0)])
def test_everything_at_once_is_uniform_under_one_prior(name, least, per_prompt, prior):
    size = 10
    share = int(per_prompt * size)
    given_ = fill_last(get_utility(name), PromptStates.of(np.full(size, prior[0]), prior[1], share), share)
    if per_prompt >= least:
        expected = [share // size + (i < share % size) for i in range(size)]
        np.testing.assert_array_equal(given_, expected)
    else:
        np.testing.assert_array_equal(given_, [2] * 5 + [0] * 5)


@pytest.mark.parametrize("form", ["raw", "normalised"])
def test_squared_advantages_are_concentrated(form):
    given_ = fill_last(get_utility("sum_squared_advantage", form), PromptStates.of(np.ones(10), 1.0, 80), 80)
    assert sorted(given_)[-2:] in ([0, 80], [16, 64])


def test_expected_terms_are_the_sums_they_stand_for():
    utility = get_utility("sum_variance")
    prompts = PromptStates.of([0.5, 2.0], 1.0, [4, 2], successes=[1, 0], failures=[0, 2], pending=[0, 3])
    hopes = expected_terms(utility, prompts, 4)
    for i, (a, s, f, q, room) in enumerate([(0.5, 1, 0, 0, 4), (2.0, 0, 2, 3, 2)]):
        for k in range(5):
            expected = hope(lambda x, y: utility.value([x], [y]), a, 1.0, s, f, q + k) if k <= room else -np.inf
            assert hopes[i, k] == pytest.approx(expected, abs=1e-12)


def test_large_problems_fall_short_by_less_than_one_step():
    """Steps of 3 that never fit 100 evenly: hull steps and a repair, against the hulls' own bound."""
    rng, size = np.random.default_rng(0), 40
    gains = np.sort(rng.random(size))[::-1]
    hopes = gains[:, None] * np.minimum(np.arange(13) // 3, 3)[None]
    group, room, paid = np.arange(size), np.full(size, 12), np.zeros(size, dtype=np.int64)
    given_, certain = _climb(hopes, group, room, paid, np.ones(size), 100, np.inf)
    assert given_.sum() == 100 and not certain
    relaxed = np.sort(np.repeat(gains, 9))[::-1][:100].sum() / 3
    assert relaxed - gains.max() <= hopes[group, given_].sum() <= relaxed


def test_tokens_are_spent_by_gain_per_token_and_not_beyond():
    utility, share = get_utility("sum_max_reward"), 30
    prompts = PromptStates.of(np.ones(3), 1.0, 30, cost_success=[1.0, 10.0, 1.0], cost_failure=[1.0, 10.0, 1.0])
    given_ = fill_last(utility, prompts, share, tokens=24.0)
    assert (given_ * prompts.expected_cost).sum() <= 24.0
    assert given_[0] == given_[2] > given_[1] >= 1
    # Nothing is gained on a prompt that is mixed best possible, so its tokens are saved.
    mixed = PromptStates.of(1.0, 1.0, 9, successes=1, failures=1)
    assert fill_last(get_utility("sum_variance"), mixed, 9, tokens=100.0).sum() == 0


def test_ties_go_to_the_fewest_paid_then_the_lowest_slot():
    utility, prompts = get_utility("sum_max_reward"), PromptStates.of(np.ones(4), 1.0, 5)
    np.testing.assert_array_equal(fill_last(utility, prompts, 2, np.array([3, 1, 2, 1])), [0, 1, 0, 1])


def test_a_share_without_room_is_refused():
    with pytest.raises(RollwiseError, match="n_max leaves room for 4"):
        fill_last(get_utility("sum_variance"), PromptStates.of([1.0, 1.0], 1.0, 2), 5)
