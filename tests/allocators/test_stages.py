"""Rules that draw in stages: AERO, AR3PO, Reinforce-Ada, DARS, OptPO, GVM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_adaroll import view_of

from rollwise.allocators import get_allocator
from rollwise.allocators.dars import further_rollouts
from rollwise.allocators.gvm import gvm_weights
from rollwise.allocators.optpo import OptPo
from rollwise.allocators.stages import fit_wave
from rollwise.step import Step
from rollwise.types import RollwiseError

RNG = np.random.default_rng(0)


def decide(name, s, f, budget, **settings):
    limits = {key: settings.pop(key) for key in ("n_min", "n_max", "quantum", "unknown", "pending") if key in settings}
    return get_allocator(name, **settings).next_wave(view_of(s, f, budget, **limits), RNG).tolist()


def play(name, coins, budget, **settings):
    """Final counts of a step on fixed coins of chances 0 and 1."""
    step = Step([str(k) for k in range(len(coins))], get_allocator(name, **settings), budget, rng=RNG, n_min=0)
    sizes = []
    while wave := step.next_wave():
        sizes.append(wave.counts.tolist())
        step.observe(*(r.result(coins[int(r.prompt_id)], answer=str(coins[int(r.prompt_id)])) for r in wave.rollouts))
    return step.close().counts.tolist(), sizes


def test_short_of_budget_the_least_served_come_first():
    view = view_of([0, 0, 2, 0], [0, 2, 1, 4], 13)
    assert fit_wave(view, np.array([3, 3, 3, 3])).tolist() == [3, 1, 0, 0]


def test_a_wave_is_rounded_up_among_those_served_then_among_all():
    view = view_of([0, 0, 0], [2, 2, 2], 24, quantum=4)
    assert fit_wave(view, np.array([0, 3, 2])).tolist() == [0, 4, 4]
    full = view_of([0, 0, 0], [2, 2, 2], 24, quantum=4, n_max=[9, 5, 9])
    assert fit_wave(full, np.array([0, 3, 0])).tolist() == [1, 3, 0]


def test_aero_rescues_only_what_failed_throughout_two_at_a_time():
    assert decide("aero", [0, 0, 0], [0, 0, 0], 48) == [8, 8, 8]
    assert decide("aero", [0, 1, 8], [8, 7, 0], 48) == [2, 0, 0]
    assert decide("aero", [0, 1, 8], [8, 7, 0], 48, rescue_rate=0.2) == [2, 2, 0]
    assert decide("aero", [1, 1, 8], [9, 7, 0], 48) == [0, 0, 0]
    counts, waves = play("aero", [0, 1, 0], 48)
    assert counts == [16, 8, 16] and [sum(wave) for wave in waves] == [24, 4, 4, 4, 4]


def test_aero_unknown_outcomes_are_no_failures_and_no_successes():
    assert decide("aero", [0, 0], [7, 0], 32, unknown=[1, 8]) == [2, 2]


def test_ar3po_leaves_at_the_first_success():
    assert decide("ar3po", [0, 1, 4], [4, 3, 0], 48) == [4, 0, 0]
    counts, waves = play("ar3po", [0, 1, 0], 48)
    assert counts == [16, 4, 16] and len(waves) == 4


def test_ar3po_saves_nothing_where_all_fail_and_the_budget_is_short():
    counts, _ = play("ar3po", [0, 0, 1], 24, size=4)
    assert counts == [10, 10, 4]


def test_reinforce_ada_stops_at_a_success_or_at_balance():
    s, f = [1, 2, 3, 0], [7, 6, 1, 8]
    assert decide("reinforce_ada", s, f, 128, stop="positive") == [0, 0, 0, 8]
    assert decide("reinforce_ada", s, f, 128) == [8, 0, 8, 8]
    assert decide("reinforce_ada", s, f, 128, group=6) == [8, 8, 8, 8]
    counts, waves = play("reinforce_ada", [0, 1], 64)
    assert counts == [32, 32] and len(waves) == 4


def test_dars_vectors():
    """systems.md 11: ET for 0, 1/8, 1/4, 3/8 of 8: 24, 11, 3, 1; HW 56, 24, 8, 3 (capped at 32 and 64 in all)."""
    s, f = list(range(9)), list(range(8, -1, -1))
    assert decide("dars", s, f, 1000) == [24, 11, 3, 1, 0, 0, 0, 0, 0]
    assert decide("dars", s, f, 1000, form="hw") == [56, 24, 8, 3, 0, 0, 0, 0, 0]
    eight = np.full(4, 8)
    assert further_rollouts(np.arange(4), eight, "et").tolist() == [56, 11, 3, 1]
    assert further_rollouts(np.arange(4), eight, "hw").tolist() == [120, 24, 8, 3]
    # S = 2 sqrt(acc (1-acc)), peak n: (8 - 8 S) / S with S = .6614 .8660 .9682
    assert further_rollouts(np.arange(1, 4), eight[1:], "et", root=True).tolist() == [5, 2, 1]


def test_dars_shares_a_short_budget_in_proportion_and_then_ends():
    assert decide("dars", [0, 1, 8, 8], [8, 7, 0, 0], 32 + 14, first=8) == [10, 4, 0, 0]
    assert decide("dars", [0, 1, 8, 8], [18, 11, 0, 0], 64) == [0, 0, 0, 0]
    assert decide("dars", [0, 0], [0, 0], 64, unknown=[8, 8]) == [0, 0]


def test_gvm_weights_of_equal_norms():
    found = gvm_weights(np.array([0.125, 0.5, 0.875, 0.0]), np.ones(4))
    assert found == pytest.approx([2.742, 1.411, 1.068, 0.0], abs=5e-4)


def test_gvm_gives_the_rest_in_proportion_and_nothing_to_the_hopeless():
    extras = decide("gvm_equal", [1, 4, 7, 0], [7, 4, 1, 8], 32 + 52)
    assert extras == [27, 14, 11, 0]
    assert decide("gvm_equal", [0, 0], [8, 8], 24) == [4, 4]


def test_gvm_needs_norms_and_uses_them():
    view = view_of([4, 4], [4, 4], 16 + 12)
    with pytest.raises(RollwiseError, match="gvm_equal"):
        get_allocator("gvm").next_wave(view, RNG)
    lean = replace(view, gradient_norms=np.array([3.0, 1.0]))
    assert get_allocator("gvm").next_wave(lean, RNG).tolist() == [9, 3]
    assert get_allocator("gvm").next_wave(replace(view, gradient_norms=np.array([3.0, 0.0])), RNG).tolist() == [12, 0]


def test_optpo_stops_at_a_margin_of_three_votes():
    rule = OptPo()
    assert rule.margin == 3 and rule.metrics() == {"optpo_margin": 3.0}
    view = view_of([0] * 4, [0] * 4, 160, unknown=[8] * 4)
    view = replace(view, votes=np.array([[5, 2], [4, 2], [8, 0], [0, 0]]))
    assert rule.next_wave(view, RNG).tolist() == [0, 4, 0, 4]
    assert rule.next_wave(replace(view, votes=None), RNG).tolist() == [4] * 4


@pytest.mark.parametrize(
    ("right", "wrong", "error", "margin"), [(0.6, 0.2, 0.05, 3), (0.5, 0.25, 0.2, 2), (0.9, 0.1, 0.1, 1)]
)
def test_optpo_margin_is_the_likelihood_ratio_test(right, wrong, error, margin):
    rule = OptPo(right=right, wrong=wrong, error=error)
    assert rule.margin == margin
    ratio, bound = right / wrong, (1 - error) / error
    assert ratio**margin >= bound * (1 - 1e-9) and ratio ** (margin - 1) < bound


def test_optpo_needs_no_outcome_at_all():
    answers = {"0": ["x"], "1": ["x", "y"]}
    step = Step(["0", "1"], OptPo(most=16), 64, rng=RNG, n_min=0, labels="majority")
    seen = {"0": 0, "1": 0}
    while wave := step.next_wave():
        for rollout in wave.rollouts:
            given = answers[rollout.prompt_id]
            step.observe(rollout.result(None, answer=given[seen[rollout.prompt_id] % len(given)]))
            seen[rollout.prompt_id] += 1
    record = step.close()
    assert record.counts.tolist() == [4, 16]
    assert record.successes.tolist() == [4, 8]
