"""Arms: agreement with exact values and the published findings, the account, resuming, and cores."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rollwise.simulate.imperfections import Imperfections
from rollwise.simulate.leaderboard import estimate
from rollwise.simulate.methods import parse_method, parse_methods
from rollwise.simulate.runner import Setting, check_account, read_results, run, run_arm
from rollwise.types import RollwiseError

SMALL = Setting(prompts=4, budget=16, steps=3, n_min=0)


def arm(method, seed=0, **setting):
    return run_arm(Setting(**setting), parse_method(method), seed)


def near(row, metric, value, slack=0.0):
    """Whether a mean is within 3.5 standard errors of a value; seeds are fixed, so this does not vary."""
    found = estimate([row], metric)
    return abs(found.mean - value) <= 3.5 * found.error + slack


# systems.md 1.6: B=2, N=16, exact and uniform
@pytest.mark.parametrize(
    ("name", "best", "even"), [("min_variance", 0.116657, 0.095679), ("sum_max_reward", 1.854447, 1.777778)]
)
def test_the_exact_rule_gains_on_uniform_what_it_should(name, best, even):
    setting = Setting(prompts=2, budget=16, steps=200, n_min=0)
    rows = [run_arm(setting, parse_method(word), 0) for word in (f"{name}@sequential=true", "uniform")]
    assert near(rows[0], name, best)
    assert near(rows[1], name, even)
    assert rows[0]["means"][name] > rows[1]["means"][name]


def test_uniform_is_worth_its_exact_values():
    row = arm("uniform", prompts=4, budget=32, steps=400)
    for name, value in {"min_variance": 0.048049, "sum_max_reward": 3.555556, "sum_variance": 0.583333}.items():
        assert near(row, name, value), name


@pytest.mark.parametrize("pool", ["beta:1,1", "hard", "easy"])
def test_dead_groups_of_uniform_are_as_many_as_computed(pool):
    from rollwise.simulate.pools import parse_pool

    row = arm("uniform", pool=pool, prompts=16, budget=128, steps=60)
    assert near(row, "dead_prompt_share", parse_pool(pool).dead_share(8))
    assert near(row, "informative_rollout_share", 1 - parse_pool(pool).dead_share(8))
    assert near(row, "unsolved_share", parse_pool(pool).unsolved_share(8))
    assert near(row, "ideal_informative", 16 * (1 - parse_pool(pool).dead_share(8)))


# systems.md 1.7, finding 3: B=4, one rollout at a time; benchmarks/simulator.py runs the whole table with more steps
TRADE_OFF = [
    ("beta:1,1", "sum_squared_advantage", None, 0.896, None),
    ("hard", "min_variance", 0.400, 0.417, 0.289),
    ("hard", "sum_max_reward", 0.555, 0.380, 0.265),
    ("easy", "min_variance", 0.328, 0.520, 0.038),
    ("easy", "sum_max_reward", 0.404, 0.608, 0.018),
]


@pytest.mark.parametrize(("pool", "name", "dead", "informative", "unsolved"), TRADE_OFF)
def test_trade_off_table(pool, name, dead, informative, unsolved):
    row = arm(f"{name}@sequential=true", pool=pool, prompts=4, budget=32, steps=80, n_min=0)
    for metric, value in (
        ("dead_prompt_share", dead),
        ("informative_rollout_share", informative),
        ("unsolved_share", unsolved),
    ):
        assert value is None or near(row, metric, value, 0.0005), metric


@pytest.mark.parametrize(("prompts", "steps", "dead"), [(4, 100, 0.124), (64, 4, 0.048)])
def test_larger_batches_help_the_index_rule(prompts, steps, dead):
    rule = "min_squared_advantage@sequential=true@advantage_form=normalised"
    row = arm(rule, prompts=prompts, budget=8 * prompts, steps=steps, n_min=0)
    assert near(row, "dead_prompt_share", dead, 0.003)


@pytest.mark.parametrize(
    ("pool", "dead"), [("beta:1,1", {2: 0.135, 4: 0.083, 8: 0.068}), ("hard", {2: 0.407, 8: 0.376})]
)
def test_few_waves_are_enough(pool, dead, repository, monkeypatch):
    # systems.md 1.7, finding 5, B=64, by the rule of that table
    monkeypatch.syspath_prepend(repository / "benchmarks")
    for waves, value in dead.items():
        row = arm("index_rule:IndexRule", pool=pool, prompts=64, budget=512, steps=15, waves=waves, n_min=0)
        assert near(row, "dead_prompt_share", value, 0.0005), waves


def test_every_method_pays_the_same_and_the_ledger_says_so(tmp_path):
    flawed = Setting(
        prompts=4, budget=16, steps=3, imperfections=Imperfections(unknown=0.2, lost=0.2, straggler=0.2, patience=1.0)
    )
    rows = run(flawed, parse_methods("uniform,min_variance,sum_max_reward,observe"), [0, 1], workers=1)
    assert [row["paid"] for row in rows] == [row["ledger_paid"] for row in rows] == [48] * 8


def test_an_account_that_does_not_balance_is_an_error():
    with pytest.raises(RollwiseError, match="47 in its ledger"):
        check_account("x", SMALL, saves=False, paid=48, recorded=47)
    with pytest.raises(RollwiseError, match="spent 40 rollouts of 48"):
        check_account("x", SMALL, saves=False, paid=40, recorded=40)
    check_account("x", SMALL, saves=True, paid=40, recorded=40)


def test_a_method_may_have_its_own_step_settings():
    rows = run(SMALL, parse_methods("uniform,uniform@waves=1@n_max=4"), [0], workers=1, ledgers=False)
    assert [row["means"]["waves"] for row in rows] == [4.0, 1.0]


def test_a_run_resumes_where_it_was_killed_and_changes_nothing(tmp_path):
    methods = parse_methods("uniform,sum_max_reward")
    whole = run(SMALL, methods, [0, 1], output=tmp_path, workers=1, ledgers=False)
    lines = (tmp_path / "results.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "results.jsonl").write_text("".join(lines[:2]) + lines[2][:40])
    seen = []
    again = run(
        SMALL, methods, [0, 1], output=tmp_path, workers=1, ledgers=False, progress=lambda *call: seen.append(call[:2])
    )
    assert seen == [(3, 4), (4, 4)]
    assert [row["means"] for row in again] == [row["means"] for row in whole]
    assert len(read_results(tmp_path / "results.jsonl")) == 4


def test_another_setting_is_another_arm(tmp_path):
    methods = parse_methods("uniform")
    run(SMALL, methods, [0], output=tmp_path, workers=1, ledgers=False)
    run([SMALL, Setting(prompts=4, budget=16, steps=2)], methods, [0], output=tmp_path, workers=1, ledgers=False)
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("content", [b"notes\n", b"[1]\n", b'{"a": 1}\n', b"\xff\n", b"[" * 100_000 + b"\n", None])
def test_a_results_file_that_is_none_is_refused(tmp_path, content):
    path = tmp_path / "results.jsonl"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(RollwiseError, match=r"^output: .*results\.jsonl .*another folder$"):
        run(SMALL, parse_methods("uniform"), [0], output=tmp_path, workers=1)


def test_two_processes_give_what_one_gives():
    methods = parse_methods("uniform,sum_max_reward")
    one = run(SMALL, methods, [0], workers=1)
    two = run(SMALL, methods, [0], workers=2)
    assert [row["means"] for row in one] == [row["means"] for row in two]
    assert json.loads(json.dumps(two)) == two


def test_carried_beliefs_differ_from_fresh_ones_on_a_population():
    common = {"pool": "hard", "prompts": 8, "budget": 64, "steps": 12, "population": 8, "n_min": 0}
    fresh = arm("min_squared_advantage", prior="1,1", **common)
    fitted = arm("min_squared_advantage", prior="empirical", **common)
    assert fresh["means"]["dead_prompt_share"] != fitted["means"]["dead_prompt_share"]


def test_learning_is_paired_and_its_curve_rises():
    row = arm("uniform", pool="beta:1,1", prompts=8, budget=64, steps=20, population=16, drift=0.5)
    assert row["curve"][-1] > row["curve"][0]
    assert row["means"]["final_rate"] == row["curve"][-1]
    assert np.mean(row["curve"]) == pytest.approx(row["means"]["curve_rate"])


def test_a_replayed_log_moves_by_itself():
    common = {"pool": "rlvr", "replay": True, "prompts": 32, "budget": 256, "steps": 4}
    row = arm("uniform", **common)
    assert row["means"]["reward_prompt_mean"] == pytest.approx(0.335, abs=0.06)


def test_settings_that_cannot_be_met_are_named_before_anything_runs():
    with pytest.raises(RollwiseError, match="population"):
        Setting(drift=0.1)
    with pytest.raises(RollwiseError, match="steps"):
        Setting(steps=0)
    with pytest.raises(RollwiseError, match="pool"):
        run(Setting(pool="hrad"), parse_methods("uniform"), [0])
    with pytest.raises(RollwiseError, match="n_max"):
        run(Setting(n_max=1), parse_methods("uniform"), [0], workers=1)
