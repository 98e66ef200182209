"""The solver against published reference values and against a brute force that knows no symmetry."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollwise.solver import solve
from rollwise.types import RollwiseError
from rollwise.utilities import UTILITIES, Utility, get_utility

# systems.md 1.6: V* at (2, 4); V* and uniform at (2, 16); V* and uniform at (4, 32).
REFERENCE = {
    ("min_variance", "raw"): (0.027778, 0.116657, 0.095679, 0.082868, 0.048049),
    ("min_squared_advantage", "raw"): (0.055556, 0.924390, 0.765432, 0.712433, 0.384393),
    ("min_squared_advantage", "normalised"): (0.222222, 5.436898, 4.839506, 4.484833, 2.927602),
    ("sum_max_reward", "raw"): (1.416667, 1.854447, 1.777778, 3.814710, 3.555556),
    ("min_max_reward", "raw"): (0.527778, 0.866793, 0.790123, 0.843975, 0.624295),
    ("sum_variance", "raw"): (0.166898, 0.333410, 0.291667, 0.697212, 0.583333),
    ("sum_squared_advantage", "raw"): (0.5, 2.664600, 2.333333, 5.960454, 4.666667),
    ("sum_squared_advantage", "normalised"): (2.4, 14.117647, 12.444444, 30.060606, 24.888889),
}


@pytest.mark.parametrize(("name", "form"), list(REFERENCE))
def test_reference_values_to_six_digits(name, form):
    tiny, small, small_uniform, large, large_uniform = REFERENCE[name, form]
    assert solve(name, 2, 4, advantage_form=form).value == pytest.approx(tiny, abs=5.1e-7)
    two = solve(name, 2, 16, advantage_form=form)
    assert (two.value, two.uniform_value) == pytest.approx((small, small_uniform), abs=5.1e-7)
    four = solve(name, 4, 32, advantage_form=form, keep_values=False)
    assert (four.value, four.uniform_value) == pytest.approx((large, large_uniform), abs=5.1e-7)


@pytest.mark.parametrize(
    ("name", "prompts", "budget", "states"),
    [("sum_max_reward", 2, 16, 2_445), ("sum_max_reward", 3, 24, 101_935), ("min_variance", 4, 32, 337_013)],
)
def test_states_are_the_published_multiset_counts(name, prompts, budget, states):
    assert solve(name, prompts, budget).states == states


class BruteForce:
    """Plain recursion over ordered states, every choice tried; also every uniform outcome."""

    def __init__(self, utility: Utility, prompts: int, budget: int, prior: tuple[float, float], n_max: int | None):
        self.utility, self.prompts, self.budget, self.prior = utility, prompts, budget, prior
        self.cap = budget if n_max is None else n_max
        self.value = lru_cache(maxsize=None)(self._value)

    def choices(self, state):
        gains = {}
        for i, (s, f) in enumerate(state):
            if s + f < self.cap:
                a, b = self.prior[0] + s, self.prior[1] + f
                mean = a / (a + b)
                up, down = list(state), list(state)
                up[i], down[i] = (s + 1, f), (s, f + 1)
                gains[i] = mean * self.value(tuple(up)) + (1 - mean) * self.value(tuple(down))
        return gains

    def _value(self, state):
        if sum(s + f for s, f in state) == self.budget:
            return self.utility.value([s for s, _ in state], [f for _, f in state])
        return max(self.choices(state).values())

    def action(self, state):
        gains = self.choices(state)
        best = max(gains.values())
        tied = [i for i, gain in gains.items() if gain >= best - 1e-12]
        return min(tied, key=lambda i: (sum(state[i]), i))

    def uniform(self):
        counts = [self.budget // self.prompts + (i < self.budget % self.prompts) for i in range(self.prompts)]

        def run(state, order):
            if not order:
                return self.utility.value([s for s, _ in state], [f for _, f in state])
            i, (s, f) = order[0], state[order[0]]
            mean = (self.prior[0] + s) / (sum(self.prior) + s + f)
            up, down = list(state), list(state)
            up[i], down[i] = (s + 1, f), (s, f + 1)
            return mean * run(up, order[1:]) + (1 - mean) * run(down, order[1:])

        return run([(0, 0)] * self.prompts, [i for i, n in enumerate(counts) for _ in range(n)])


@st.composite
def problems(draw):
    prompts, budget = draw(st.sampled_from([(1, 1), (1, 5), (2, 3), (2, 6), (3, 4), (3, 5), (4, 3)]))
    form = draw(st.sampled_from(["raw", "normalised"]))
    if draw(st.booleans()):
        utility = get_utility(draw(st.sampled_from(UTILITIES)), form)
    else:
        # Eighths are exact in binary, so that near-ties are ties for both implementations or for neither.
        table = np.array(draw(st.lists(st.integers(-16, 16), min_size=49, max_size=49))).reshape(7, 7) / 8
        table = table + table.T if draw(st.booleans()) else table
        utility = Utility.from_table(table, draw(st.sampled_from(["sum", "min"])))
    prior = draw(st.sampled_from([(1.0, 1.0), (0.5, 0.5), (0.3, 0.3), (0.5, 2.0), (3.0, 1.0), (2.5, 2.5)]))
    n_max = draw(st.sampled_from([None, -(-budget // prompts), max(-(-budget // prompts), budget - 1)]))
    return utility, prompts, budget, prior, n_max


@settings(max_examples=60, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_value_uniform_and_policy_match_brute_force(problem, random):
    brute, solved = BruteForce(*problem), solve(*problem)
    prompts, budget = solved.prompts, solved.budget
    start = ((0, 0),) * prompts
    assert solved.value == pytest.approx(brute.value(start), abs=1e-11)
    assert solved.uniform_value == pytest.approx(brute.uniform(), abs=1e-11)
    state = list(start)
    for _ in range(budget):
        s, f = [x for x, _ in state], [y for _, y in state]
        assert solved.value_at(s, f) == pytest.approx(brute.value(tuple(state)), abs=1e-11)
        assert solved.action(s, f) == brute.action(tuple(state))
        i = random.choice([i for i in range(prompts) if sum(state[i]) < brute.cap])
        state[i] = (state[i][0] + 1, state[i][1]) if random.random() < 0.5 else (state[i][0], state[i][1] + 1)
    assert solved.value_at([x for x, _ in state], [y for _, y in state]) == pytest.approx(brute.value(tuple(state)))


def test_blocks_are_looked_up_together():
    solved = solve("sum_variance", 3, 6, prior=(0.5, 2.0))
    s, f = np.array([[0, 1, 0], [2, 0, 0]]), np.array([[0, 1, 1], [0, 1, 1]])
    one_by_one = [solved.action(*pair) for pair in zip(s, f)]
    np.testing.assert_array_equal(solved.actions(s, f), one_by_one)
    np.testing.assert_allclose(solved.state_values(s, f), [solved.value_at(*pair) for pair in zip(s, f)])


@pytest.mark.parametrize(
    "counts",
    [
        ([[-1, 0]], [[0, 0]]),
        ([[0, 0]], [[0, -3]]),
        ([[4, 0]], [[2, 0]]),
        ([[9, 0]], [[-4, 0]]),
        ([[2**62, 0]], [[2**62, 0]]),
        ([[5, 0]], [[0, 5]]),
        ([[0, 0], [5, 5]], [[0, 0], [0, 0]]),
    ],
)
def test_counts_that_leave_nothing_to_decide_are_refused_wherever_they_stand(counts):
    table = solve("sum_variance", 2, 10, n_max=5)
    with pytest.raises(RollwiseError, match="counts are no state to decide in"):
        table.actions(*counts)
    assert table.actions(np.zeros((0, 2), int), np.zeros((0, 2), int)).shape == (0,)


@pytest.mark.parametrize("name", UTILITIES)
def test_ties_go_to_fewest_rollouts_then_lowest_slot(name):
    solved = solve(name, 3, 9)
    assert solved.action([0, 0, 0], [0, 0, 0]) == 0
    if name != "sum_squared_advantage":
        assert solved.action([1, 0, 1], [1, 0, 1]) == 1
    # All solved: under the maximum-reward utilities every choice ties.
    if "max_reward" in name:
        assert solved.action([2, 1, 1], [0, 0, 0]) == 1


def test_without_values_the_policy_stays_and_values_are_refused():
    lean, full = solve("min_variance", 3, 9, keep_values=False), solve("min_variance", 3, 9)
    assert lean.value == full.value
    np.testing.assert_array_equal(lean.choices, full.choices)
    with pytest.raises(RollwiseError, match="keep_values"):
        lean.value_at([0, 0, 0], [0, 0, 0])


def test_threads_do_not_change_a_bit(monkeypatch):
    several = solve("sum_max_reward", 3, 36)
    monkeypatch.setattr("rollwise.solver.exact.thread_count", lambda: 1)
    single = solve("sum_max_reward", 3, 36)
    np.testing.assert_array_equal(several.values, single.values)
    np.testing.assert_array_equal(several.choices, single.choices)


def test_many_prompts_with_little_budget():
    solved = solve("sum_max_reward", 12, 4)
    # Four fresh prompts at a hazard of 1/2 each: nothing better exists.
    assert solved.value == pytest.approx(2.0)
    assert solved.action([0] * 11 + [1], [1, 1] + [0] * 10) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: solve("min_variance", 0, 4), ["prompts 0"]),
        (lambda: solve("min_variance", 2, 0), ["budget 0"]),
        (lambda: solve("min_variance", 2, 4, prior=(0.0, 1.0)), ["prior", "(1.0, 1.0)"]),
        (lambda: solve("min_variance", 3, 10, n_max=3), ["n_max 3", "at least 4"]),
        (lambda: solve("min_variance", 8, 64), ["memory_limit", "4 GiB", "blocks of 6 prompts"]),
        (lambda: solve("sum_max_reward", 1, 10**6), ["memory_limit"]),
        (lambda: solve("min_varianze", 2, 4), ["min_variance"]),
        (lambda: solve("min_variance", 2, 4).action([2, 0], [1, 1]), ["3 in all"]),
        (lambda: solve("min_variance", 2, 4).value_at([3, 0], [1, 1]), ["4 in all"]),
        (lambda: solve("min_variance", 2, 4, n_max=2).action([3, 0], [0, 0]), ["at most 2"]),
        (lambda: solve("min_variance", 2, 4).action([0, 0, 0], [0, 0, 0]), ["2 prompts"]),
    ],
)
def test_mistakes_are_one_line_that_names_the_setting(call, words):
    with pytest.raises(RollwiseError) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)
