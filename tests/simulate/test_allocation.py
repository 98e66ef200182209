"""Pictures of allocations, and what was published about them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rollwise.cli.app import status_of
from rollwise.simulate.allocation import Picture, picture, statements
from rollwise.simulate.pools import parse_pool
from rollwise.utilities import UTILITIES


def drawn(**counts):
    """Pictures in which every utility gives 8 of 32 to prompts solved half the time, but for those given."""
    even = Picture(np.full(400, 8), np.full(400, 4))
    return {name: counts.get(name, even) for name in UTILITIES}


def test_statements_hold_where_the_pictures_say_so():
    rng = np.random.default_rng(0)
    found = drawn(
        sum_squared_advantage=Picture(np.array([32, 0, 0, 0] * 100), np.array([11, 0, 0, 0] * 100)),
        min_variance=Picture(rng.integers(12, 15, 400), np.zeros(400, dtype=np.int64)),
        min_max_reward=Picture(np.full(400, 8), np.array([0, 4] * 200)),
    )
    n = found["min_variance"].counts
    found["min_variance"] = Picture(n, n)
    found["sum_variance"] = Picture(n - 3, n - 3)
    assert all(each.holds for each in statements(found, 4, 32))


def test_statements_fail_where_all_are_alike():
    found = statements(drawn(), 4, 32)
    # an even allocation never goes above 15; nothing else that was published is true of it
    assert [each.holds for each in found] == [False, True, False, False, False]


def test_raw_squared_advantage_concentrates_on_moderate_prompts():
    # systems.md 1.3: 5 to 6 % of the prompts reach 32, at mean reward near one half
    seen = picture("sum_squared_advantage", parse_pool("hard"), 4, 32, steps=60)
    everything = seen.counts == 32
    assert 0.01 < everything.mean() < 0.12
    assert 0.3 < seen.reward[everything].mean() < 0.7


def call(capsys, *arguments):
    status = status_of(["analyze", *arguments, "--json"])
    return status, capsys.readouterr().out


def test_analyses_are_called(capsys):
    status, out = call(capsys, "difficulty", "--pool", "hard", "--pool", "rlvr")
    assert status == 0
    assert json.loads(out)["pools"]["rlvr"]["entropy"] > json.loads(out)["pools"]["hard"]["entropy"]
    flags = ["--prompts", "2", "--budget", "8", "--steps", "3"]
    status, out = call(capsys, "allocation", "--pool", "easy", *flags)
    assert status == 0
    assert len(json.loads(out)["pools"]["easy"]["statements"]) == 5
    status, out = call(capsys, "beliefs", "--discount", "0.9")
    assert status == 0
    assert json.loads(out)["scores"][0]["name"] == "carried_0.85"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["difficulty", "--limit", "100"], "limit"),
        (["difficulty", "--limit", str(2**70)], "limit"),
        (["difficulty", "--figure", "."], "figure: . is a folder"),
        (["allocation", "--pool", "hrad"], "hard"),
        (["allocation", "--seed", "-1"], "seed: -1; give 0 or more"),
        (["allocation", "--waves", "0"], "waves: 0; give 1 or more"),
        (["allocation", "--prompts", "1000000"], "prompts: 1000000; give at most 10000"),
        (["beliefs", "--log", "math_cot8"], "twice"),
        (["beliefs", "--discount", "2"], "discount"),
    ],
)
def test_what_cannot_be_analysed_is_one_line(capsys, arguments, part):
    assert status_of(["analyze", *arguments]) == 2
    err = capsys.readouterr().err
    assert part in err and err.count("\n") == 1


def test_tables_for_a_terminal(capsys):
    for arguments in (
        ["difficulty"],
        ["allocation", "--prompts", "2", "--budget", "8", "--steps", "2"],
        ["beliefs"],
    ):
        assert status_of(["analyze", *arguments]) == 0
    out = capsys.readouterr().out
    assert "entropy" in out and "min_squared_advantage" in out and "carried_0.85" in out
