"""AdaRoll on steps played out: exact spending, the optimum reached, waves, blocks, unknowns, messages."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import play as exact_play

from rollwise.allocators.adaroll import AdaRoll
from rollwise.allocators.base import Allocator
from rollwise.solver import solve
from rollwise.solver.ordered import solve_ordered
from rollwise.solver.prices import indices
from rollwise.solver.prompts import PromptStates
from rollwise.types import UNLIMITED, RollwiseError, StepView
from rollwise.utilities import UTILITIES, Utility, get_utility

RNG = np.random.default_rng(0)
FORMS = [("min_squared_advantage", "raw"), ("min_squared_advantage", "normalised")]
FORMS += [("sum_max_reward", "raw"), ("min_max_reward", "raw")]


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    """Tables solved here leave the user's cache alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROLLWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def view_of(
    s, f, budget, *, prior=(1.0, 1.0), unknown=None, pending=None, n_min=0, n_max=None, waves_left=1, quantum=1
):
    s, f = np.asarray(s, dtype=np.int64), np.asarray(f, dtype=np.int64)
    size = s.size
    zeros = np.zeros(size, dtype=np.int64)
    unknown = zeros if unknown is None else np.asarray(unknown, dtype=np.int64)
    pending = zeros if pending is None else np.asarray(pending, dtype=np.int64)
    return StepView(
        prompt_ids=tuple(f"p{i}" for i in range(size)),
        prior_a=np.full(size, prior[0]),
        prior_b=np.full(size, prior[1]),
        successes=s,
        failures=f,
        unknown=unknown,
        pending=pending,
        tokens_spent=zeros,
        expected_cost=np.ones(size),
        n_min=np.broadcast_to(np.asarray(n_min, dtype=np.int64), size),
        n_max=np.broadcast_to(np.asarray(UNLIMITED if n_max is None else n_max, dtype=np.int64), size),
        budget_left=int(budget - (s + f + unknown + pending).sum()),
        waves_left=waves_left,
        quantum=quantum,
    )


def play(rule, size, budget, p, rng, *, waves=None, unknown_share=0.0, **limits):
    """Run a step to its end; gives the waves and the final counts (successes, failures, unknown)."""
    counts, done = np.zeros((3, size), dtype=np.int64), []
    while counts.sum() < budget:
        left = max(1, (waves or 1) - len(done))
        view = view_of(counts[0], counts[1], budget, unknown=counts[2], waves_left=left, **limits)
        wave = rule.next_wave(view, rng)
        assert wave.shape == (size,) and wave.min() >= 0 and 0 < wave.sum() <= view.budget_left
        assert wave.sum() % view.quantum == 0 or wave.sum() == view.budget_left
        done.append(wave)
        for i, n in enumerate(wave):
            lost = rng.binomial(n, unknown_share)
            right = rng.binomial(n - lost, p[i])
            counts[:, i] += (right, n - lost - right, lost)
    return done, counts


def test_it_is_an_allocator_that_spends_everything():
    assert isinstance(AdaRoll(), Allocator)
    assert AdaRoll().metrics() == {} and not AdaRoll.saves


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_budget_is_spent_exactly_within_the_limits(data):
    size = data.draw(st.integers(1, 9))
    budget = data.draw(st.integers(size, 3 * size))
    quantum = data.draw(st.integers(1, 4))
    n_min = data.draw(st.integers(0, min(2, budget // size)))
    n_max = data.draw(st.sampled_from([None, -(-budget // size), -(-budget // size) + 2]))
    waves = data.draw(st.integers(1, 5))
    name = data.draw(st.sampled_from(UTILITIES))
    rule = AdaRoll(
        name, data.draw(st.sampled_from(["raw", "normalised"])), block_prompts=data.draw(st.sampled_from([None, 2, 4]))
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    done, counts = play(
        rule,
        size,
        budget,
        rng.random(size),
        rng,
        waves=waves,
        unknown_share=0.2,
        n_min=n_min,
        n_max=n_max,
        quantum=quantum,
    )
    assert sum(wave.sum() for wave in done) == budget == counts.sum()
    assert len(done) <= waves
    assert (done[0] >= n_min).all()
    assert counts.sum(axis=0).max() <= (n_max or budget)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9), st.integers(1, 3), st.sampled_from(UTILITIES), st.integers(0, 1000))
def test_sequential_gives_one_rollout_per_block_at_a_time(size, rounds, name, seed):
    rule, rng = AdaRoll(name, sequential=True, block_prompts=3), np.random.default_rng(seed)
    budget = size * rounds
    done, counts = play(rule, size, budget, rng.random(size), rng, unknown_share=0.1)
    assert counts.sum() == budget
    blocks = rule.blocks(view_of([0] * size, [0] * size, budget))
    assert all(wave[block].sum() <= 1 for wave in done for block in blocks)


def exact_worth(rule, utility, prompts, budget, **view):
    """Expected utility of a rule, every outcome of every wave enumerated under Beta(1, 1)."""

    @cache
    def worth(s, f, waves_done):
        if sum(s) + sum(f) == budget:
            return utility.value(s, f)
        waves_left = view["waves"] - waves_done if "waves" in view else 1
        wave = rule.next_wave(view_of(s, f, budget, waves_left=waves_left), RNG)
        return spread(s, f, tuple(wave), waves_done + 1 if "waves" in view else 0)

    @cache
    def spread(s, f, wave, waves_done):
        i = next((i for i, n in enumerate(wave) if n), None)
        if i is None:
            return worth(s, f, waves_done)
        mean = (1 + s[i]) / (2 + s[i] + f[i])
        rest = wave[:i] + (wave[i] - 1,) + wave[i + 1 :]
        up, down = s[:i] + (s[i] + 1,) + s[i + 1 :], f[:i] + (f[i] + 1,) + f[i + 1 :]
        return mean * spread(up, f, rest, waves_done) + (1 - mean) * spread(s, down, rest, waves_done)

    start = (0,) * prompts
    return worth(start, start, 0)


# systems.md 1.6, B=2, N=4.
@pytest.mark.parametrize(
    ("name", "form", "optimum"),
    [
        ("min_variance", "raw", 0.027778),
        ("min_squared_advantage", "raw", 0.055556),
        ("min_squared_advantage", "normalised", 0.222222),
        ("sum_max_reward", "raw", 1.416667),
        ("min_max_reward", "raw", 0.527778),
        ("sum_variance", "raw", 0.166898),
        ("sum_squared_advantage", "raw", 0.5),
        ("sum_squared_advantage", "normalised", 2.4),
    ],
)
def test_sequential_play_is_worth_the_published_optimum(name, form, optimum):
    rule = AdaRoll(name, form, sequential=True)
    assert exact_worth(rule, get_utility(name, form), 2, 4) == pytest.approx(optimum, abs=5.1e-7)


@pytest.mark.parametrize(("name", "form"), FORMS)
@pytest.mark.parametrize(("prompts", "budget"), [(2, 16), (3, 12)])
def test_closed_forms_are_worth_the_exact_optimum(name, form, prompts, budget):
    rule = AdaRoll(name, form, sequential=True)
    optimum = solve(name, prompts, budget, advantage_form=form).value
    assert exact_worth(rule, get_utility(name, form), prompts, budget) == pytest.approx(optimum, abs=1e-9)


@pytest.mark.parametrize("name", UTILITIES)
def test_as_many_waves_as_rollouts_are_worth_the_sequential_optimum(name):
    assert exact_worth(AdaRoll(name), get_utility(name), 2, 6, waves=6) == pytest.approx(
        solve(name, 2, 6).value, abs=1e-9
    )


@pytest.mark.parametrize("name", UTILITIES)
def test_waves_never_lose_to_uniform_and_more_of_them_gain(name):
    solved, utility = solve(name, 3, 9), get_utility(name)
    worth = [exact_worth(AdaRoll(name), utility, 3, 9, waves=waves) for waves in (1, 3, 9)]
    assert solved.uniform_value - 1e-9 <= worth[0] <= worth[1] + 1e-9
    assert worth[1] <= worth[2] + 1e-9 and worth[2] == pytest.approx(solved.value, abs=1e-9)


@pytest.mark.parametrize(("name", "form"), FORMS)
@pytest.mark.parametrize(("prompts", "budget"), [(2, 16), (3, 12)])
def test_closed_forms_in_waves_keep_pace_with_the_exact_table(name, form, prompts, budget):
    """Nearly the table's worth (97 % of it and up), and never less than uniform."""
    utility = get_utility(name, form)
    by_table = AdaRoll(Utility.from_function(lambda s, f: utility.term(s, f), utility.kind))
    uniform = solve(utility, prompts, budget).uniform_value
    for waves in (1, 2, 3):
        worth = exact_worth(AdaRoll(utility), utility, prompts, budget, waves=waves)
        assert worth >= uniform - 1e-9
        assert worth >= 0.97 * exact_worth(by_table, utility, prompts, budget, waves=waves)


@pytest.mark.parametrize(
    "name", ["min_variance", "min_squared_advantage", "sum_max_reward", "min_max_reward", "sum_variance"]
)
def test_everything_at_once_is_spread_evenly(name):
    wave = AdaRoll(name).next_wave(view_of([0] * 4, [0] * 4, 32), RNG)
    np.testing.assert_array_equal(wave, [8, 8, 8, 8])


@pytest.mark.parametrize("name", UTILITIES)
def test_running_rollouts_count(name):
    """A prompt that has its share running already gets less than an equal one that has none."""
    wave = AdaRoll(name).next_wave(view_of([0, 0], [0, 0], 12, pending=[4, 0]), RNG)
    assert wave.sum() == 8
    if name != "sum_squared_advantage":
        assert wave[1] > wave[0]


@pytest.mark.parametrize(
    ("name", "chosen"), [("sum_max_reward", 2), ("min_max_reward", 2), ("min_squared_advantage", 1)]
)
def test_closed_forms_serve_who_lacks_most(name, chosen):
    s, f = [3, 3, 0], [2, 0, 4]
    assert AdaRoll(name, sequential=True).next_wave(view_of(s, f, 20), RNG).argmax() == chosen


def test_blocks_asked_for_advance_together():
    rule = AdaRoll("min_variance", block_prompts=4)
    view = view_of([0] * 9, [0] * 9, 72, waves_left=4)
    wave = rule.next_wave(view, RNG)
    assert [wave[block].sum() for block in rule.blocks(view)] == [6, 6, 6]


def test_a_large_step_is_decided_as_a_whole():
    """Rollouts go where they are needed, not where a block has them left; two each come first."""
    rule = AdaRoll("sum_variance")
    view = view_of([0] * 9, [0] * 9, 72, waves_left=4)
    assert rule.blocks(view) == (slice(0, 9),)
    np.testing.assert_array_equal(rule.next_wave(view, RNG), [2] * 9)
    s, f = [1] * 5 + [0] * 4, [1] * 5 + [3] * 4
    wave = rule.next_wave(view_of(s, f, 72, waves_left=3), RNG)
    assert wave[:5].sum() == 0 and (wave[5:] >= 2).all()


@pytest.mark.parametrize("name", ["min_variance", "sum_variance"])
def test_a_step_as_a_whole_is_worth_more_than_in_blocks(name):
    """Sixteen prompts in four waves on common coins, means of 150 steps, two standard errors apart."""
    utility, rng = get_utility(name), np.random.default_rng(3)
    rules = (AdaRoll(name), AdaRoll(name, block_prompts=4))
    worth = np.empty((150, 2))
    for row in worth:
        p, seed = rng.random(16), int(rng.integers(2**32))
        for column, rule in enumerate(rules):
            _, counts = play(rule, 16, 128, p, np.random.default_rng(seed), waves=4)
            row[column] = utility.value(counts[0], counts[1])
    gain = worth[:, 0] - worth[:, 1]
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    assert gain.mean() > 2 * error


@pytest.mark.parametrize("name", ["sum_variance", "sum_max_reward"])
def test_waves_sized_by_the_plan_are_worth_more_than_even_ones(name):
    """Where the exact table fits, too: the sizes are an output (even ones: 0.3148 of 0.3334 for U5 in two waves)."""
    solved, utility = solve(name, 2, 16), get_utility(name)

    class Even:
        def next_wave(self, view, rng):
            share = [-(-view.budget_left // view.waves_left)]
            return solved.fill(view.successes[None], view.failures[None], view.pending[None], share)[0]

    for waves in (2, 3, 4):
        planned = exact_worth(AdaRoll(name), utility, 2, 16, waves=waves)
        assert exact_worth(Even(), utility, 2, 16, waves=waves) <= planned + 1e-9 <= solved.value + 2e-9


def test_a_whole_block_is_decided_as_the_table_says():
    rule, solved = AdaRoll("sum_variance", sequential=True, block_prompts=2), solve("sum_variance", 2, 8)
    s, f = [2, 0, 1, 1], [0, 1, 1, 0]
    wave = rule.next_wave(view_of(s, f, 16), RNG)
    assert wave[:2].argmax() == solved.action(s[:2], f[:2]) and wave[2:].argmax() == solved.action(s[2:], f[2:])
    np.testing.assert_array_equal(wave.reshape(2, 2).sum(axis=1), [1, 1])


def test_an_unknown_outcome_shortens_the_horizon_and_nothing_else():
    s, f, unknown = [1, 0, 2], [0, 1, 0], [0, 2, 1]
    wave = AdaRoll("min_variance", sequential=True).next_wave(view_of(s, f, 12, unknown=unknown), RNG)
    assert wave.argmax() == solve("min_variance", 3, 9).action(s, f)


def test_minimum_counts_come_first_and_the_rest_of_the_wave_counts_them():
    rule = AdaRoll("min_variance", sequential=True)
    np.testing.assert_array_equal(rule.next_wave(view_of([0] * 3, [0] * 3, 9, n_min=2), RNG), [2, 2, 2])
    waves = AdaRoll("min_variance").next_wave(view_of([0] * 3, [0] * 3, 12, n_min=1, waves_left=2), RNG)
    np.testing.assert_array_equal(waves, [2, 2, 2])


def test_the_minimum_is_rounded_up_to_the_quantum():
    rule = AdaRoll("min_squared_advantage")
    wave = rule.next_wave(view_of([0] * 3, [0] * 3, 12, n_min=1, waves_left=12, quantum=4), RNG)
    assert wave.sum() == 4 and wave.min() == 1


def test_each_cap_is_kept_even_where_they_differ():
    wave = AdaRoll("sum_squared_advantage").next_wave(view_of([0] * 3, [0] * 3, 9, n_max=[2, 5, 4]), RNG)
    assert wave.sum() == 9 and (wave <= [2, 5, 4]).all()


def test_the_decision_is_a_pure_function_of_the_view():
    view = view_of([1, 0, 2, 0, 0], [0, 1, 1, 0, 3], 30, waves_left=3)
    first = AdaRoll("sum_variance").next_wave(view, np.random.default_rng(1))
    np.testing.assert_array_equal(first, AdaRoll("sum_variance").next_wave(view, np.random.default_rng(2)))


def test_a_user_utility_and_another_shared_prior_are_served():
    utility = Utility.from_function(lambda s, f: np.minimum(s, 2) * 1.0, "sum", name="two hits")
    view = view_of([2, 0, 1], [0, 0, 0], 9, prior=(0.5, 2.0))
    wave = AdaRoll(utility).next_wave(view, RNG)
    assert wave.sum() == 6 and wave[0] == 0


def test_nothing_left_is_an_empty_wave():
    assert not AdaRoll().next_wave(view_of([2, 1], [0, 1], 4), RNG).any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: AdaRoll("min_varianse"), ["min_variance"]),
        (lambda: AdaRoll(block_prompts=0), ["block_prompts 0"]),
        (lambda: AdaRoll(token_budget=0.0), ["token_budget 0.0"]),
        (lambda: AdaRoll().next_wave(view_of([0, 0], [0, 0], 3, n_min=2), RNG), ["n_min", "at most 1"]),
        (lambda: AdaRoll().next_wave(view_of([0, 0], [0, 0], 9, n_max=4), RNG), ["n_max", "at least 5"]),
        (lambda: AdaRoll().next_wave(view_of([0, 0], [0, 0], 4, n_min=3, n_max=2), RNG), ["n_m"]),
        (
            lambda: AdaRoll(sequential=True).next_wave(view_of([0] * 4, [0] * 4, 8, quantum=2), RNG),
            ["sequential", "world size 2"],
        ),
    ],
)
def test_mistakes_are_one_line_that_names_the_setting(call, words):
    with pytest.raises(RollwiseError) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)


def with_priors(view, a, b):
    return replace(view, prior_a=np.asarray(a, dtype=float), prior_b=np.asarray(b, dtype=float))


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("waves", [1, 2, 4])
def test_every_prompt_may_have_a_prior_of_its_own(name, waves):
    view = with_priors(view_of([0, 1, 0, 0], [1, 0, 0, 2], 20, waves_left=waves), [1, 2, 0.3, 5], [1, 0.5, 4, 5])
    wave = AdaRoll(name).next_wave(view, RNG)
    assert 0 < wave.sum() <= 16 and (wave >= 0).all() and (waves > 1 or wave.sum() == 16)


def test_a_hopeless_prior_gets_less_than_an_open_one():
    zeros = [0] * 20
    view = with_priors(view_of(zeros, zeros, 80, waves_left=3), [1.0, 0.02] * 10, [1.0, 20.0] * 10)
    wave = AdaRoll("sum_variance").next_wave(view, RNG)
    assert (wave[::2] >= 2).all() and wave[1::2].sum() == 0


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("sequential", [False, True])
def test_different_priors_are_played_between_uniform_and_the_optimum(name, sequential):
    """Every outcome enumerated; one at a time, the smallest steps are played exactly."""
    utility, priors = get_utility(name), [(1.0, 1.0), (0.5, 2.0)]
    rule = AdaRoll(name, sequential=sequential)
    a, b = np.transpose(priors)

    def decide(s, f, left, waves_left):
        return rule.next_wave(with_priors(view_of(s, f, 8, waves_left=waves_left), a, b), RNG)

    def h(s, f):
        return float(utility.term(np.array(s), np.array(f)))

    best = solve_ordered(utility, PromptStates.of(a, b, 8), 8)
    worth = exact_play(decide, h, utility.kind, priors, 8, 8 if sequential else 3)
    assert best.uniform - 1e-9 <= worth <= best.value + 1e-9
    if sequential and utility.kind == "sum":
        assert worth == pytest.approx(best.value, abs=1e-9)


def test_one_at_a_time_on_a_large_step_serves_the_largest_indices():
    rng, size = np.random.default_rng(0), 40
    view = view_of(rng.integers(0, 3, size), rng.integers(0, 3, size), 400, quantum=4)
    wave = AdaRoll("sum_variance", sequential=True).next_wave(view, RNG)
    room = np.full(size, view.budget_left)
    states = PromptStates.of(np.ones(size), 1.0, room, successes=view.successes, failures=view.failures)
    index = indices(get_utility("sum_variance"), states)
    assert wave.sum() == 4 and wave.max() == 1
    assert index[wave == 1].min() >= index[wave == 0].max() - 1e-12


def test_blocks_with_exact_tables_need_one_prior():
    view = with_priors(view_of([0, 0], [0, 0], 4), [1, 2], [1, 1])
    with pytest.raises(RollwiseError, match="block_prompts"):
        AdaRoll(block_prompts=2).next_wave(view, RNG)


def test_a_token_budget_saves_rollouts_not_worth_their_tokens():
    rule = AdaRoll("sum_variance", token_budget=600.0)
    assert rule.saves and not AdaRoll().saves
    cost = np.where(np.arange(20) < 10, 1.0, 25.0)
    rng, counts, spent = np.random.default_rng(1), np.zeros((2, 20), dtype=int), 0.0
    for waves_left in (3, 2, 1):
        view = replace(view_of(*counts, 160, waves_left=waves_left), expected_cost=cost)
        view = replace(view, tokens_spent=(counts.sum(axis=0) * cost).astype(np.int64))
        wave = rule.next_wave(view, RNG)
        hits = rng.binomial(wave, 0.5)
        counts += np.array([hits, wave - hits])
        spent += float(wave @ cost)
    assert spent <= 600.0
    assert counts[:, :10].sum() > 1.3 * counts[:, 10:].sum()


def test_blocks_in_a_multiple_of_the_world_size_may_go_one_at_a_time():
    rule = AdaRoll("min_variance", sequential=True, block_prompts=2)
    wave = rule.next_wave(view_of([0] * 4, [0] * 4, 16, quantum=2), RNG)
    assert wave.sum() == 2 and wave[:2].sum() == 1


@pytest.mark.parametrize(("size", "name"), [(1, "sum_variance"), (4, "sum_variance"), (4, "min_squared_advantage")])
@pytest.mark.parametrize("waves", [1, 4])
def test_a_budget_beyond_any_plan_is_refused_before_anything_is_made_of_it(size, name, waves):
    """An array over the counts up to a million would take terabytes."""
    with pytest.raises(RollwiseError, match=f"at most {1024 * size}"):
        AdaRoll(name).next_wave(view_of([0] * size, [0] * size, 1_000_000, waves_left=waves), RNG)
