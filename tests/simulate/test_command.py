"""`rollwise simulate` as it is called."""

from __future__ import annotations

import json

import pytest

from rollwise.cli.app import status_of
from rollwise.cli.simulate import read_seeds
from rollwise.types import RollwiseError

FAST = ["simulate", "--prompts", "4", "--budget", "16", "--steps", "3", "--workers", "1"]


def call(capsys, *arguments):
    status = status_of([*FAST, *arguments])
    return status, *capsys.readouterr()


def test_json_is_all_there_is_on_standard_output(capsys, tmp_path):
    picture = tmp_path / "shares.png"
    flags = [
        "--methods",
        "uniform,sum_max_reward",
        "--seeds",
        "2",
        "--output",
        str(tmp_path),
        "--picture",
        str(picture),
    ]
    status, out, err = call(capsys, *flags, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["methods"]["uniform"]["rollouts_paid"] == found["methods"]["uniform"]["ledger_paid"] == [48, 48]
    assert set(found["methods"]["sum_max_reward"]["differences"]["dead_prompt_share"]) == {
        "mean",
        "low",
        "high",
        "seeds",
        "seeds_needed",
    }
    assert found["utilities"]["sum_variance"]["bound"] > 0
    assert picture.stat().st_size > 1000
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 4
    assert "4/4 arms" in err


def test_the_table_names_methods_in_full(capsys):
    status, out, _ = call(capsys, "--methods", "uniform,min_squared_advantage", "--seeds", "1", "--pool", "hard")
    assert status == 0
    assert "min_squared_advantage" in out
    assert "dead" in out and "bound" in out


def test_switches_reach_the_simulation(capsys):
    flags = ["--methods", "uniform", "--seeds", "1", "--unknown", "1", "--population", "8", "--drift", "0.3", "--json"]
    _, out, _ = call(capsys, *flags)
    found = json.loads(out)
    assert found["methods"]["uniform"]["metrics"]["unknown_share"]["mean"] == 1.0
    assert "final_rate" in found["methods"]["uniform"]["metrics"]


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (["--pool", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--methods", "min_varience"], "min_variance"),
        (["--seeds", "none"], "seeds"),
        (["--drift", "0.1"], "population"),
        (["--unknown", "2"], "unknown"),
        (["--baseline", "adaroll"], "baseline"),
        (["--n-max", "2"], "n_max"),
        (["--population", "-1"], "population: -1 prompts; give 1 or more"),
        (["--transfer", "nan"], "drift transfer: nan; give 0 or more"),
        (["--workers", "0"], "workers: 0 processes; give 1 or more"),
        (["--n-min", "9"], "n_min: 9 for 4 prompts and 16 rollouts; at most 4"),
        (["--picture", "/dev/null/x.png"], "picture: /dev/null/x.png cannot be written"),
        (["--picture", "."], "picture: . is a folder; give a file, such as picture.png"),
        (["--methods", "nope"], "method: no 'nope'; valid: adaroll, aero, ar3po, cero"),
        (["--output", "/dev/null/x", "--seeds", "1", "--methods", "uniform"], "output: /dev/null/x cannot be written"),
    ],
)
def test_what_cannot_be_met_is_one_line_and_status_2(capsys, flags, part):
    status, out, err = call(capsys, *flags)
    assert (status, out) == (2, "")
    assert part in err and err.count("\n") == 1 and "Traceback" not in err


def test_seeds_as_number_and_range():
    assert list(read_seeds("3")) == [0, 1, 2]
    assert list(read_seeds("10-12")) == [10, 11, 12]
    for text in ("0", "5-3", "-2", "x"):
        with pytest.raises(RollwiseError, match="seeds"):
            read_seeds(text)
