"""`rollwise solve` gives the published numbers and messages for people."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rollwise.cli.solve import run
from rollwise.cli.solve_lines import lines
from rollwise.cli.solve_problem import Problem, fits
from rollwise.solver import load_table
from rollwise.solver.prices import index_table
from rollwise.types import RollwiseError
from rollwise.utilities import get_utility


def test_the_result_is_json_with_the_published_values():
    found = json.loads(json.dumps(run("min_squared_advantage", 2, 16, advantage_form="normalised")))
    assert found["value"] == pytest.approx(5.436898, abs=5.1e-7)
    assert found["uniform_value"] == pytest.approx(4.839506, abs=5.1e-7)
    assert found["gain"] == pytest.approx(5.436898 / 4.839506 - 1, abs=1e-6)
    assert (found["utility"], found["prompts"], found["budget"]) == ("min_squared_advantage", 2, 16)
    assert found["prior"] == [1.0, 1.0] and found["states"] == 755 and found["seconds"] > 0


def test_without_a_uniform_value_there_is_no_gain():
    assert run("min_variance", 2, 3)["gain"] is None


def test_the_exact_value_comes_with_a_bound_and_the_size_of_its_table(tmp_path):
    found = run("sum_variance", 4, 32, save=tmp_path / "table.npz")
    assert found["upper_bound"] / 4 == pytest.approx(0.17868, abs=6e-6)
    assert found["gap"] == pytest.approx(1 - 0.697212 / (4 * 0.178682), abs=1e-5)
    assert found["table_bytes"] > 337_013 * 8 and found["value_error"] is None and found["max_per_prompt"] is None
    assert load_table(tmp_path / "table.npz").value == found["value"]


def test_a_capped_table_is_bounded_by_capped_policies():
    found = run("sum_max_reward", 3, 12, max_per_prompt=6)
    assert found["value"] <= found["upper_bound"] <= run("sum_max_reward", 3, 12)["upper_bound"]


# beyond.md 2.
def test_the_index_is_evaluated_exactly_where_that_is_possible(tmp_path):
    found = run("sum_variance", 4, 32, method="index", max_per_prompt=32, save=tmp_path / "index.npz")
    assert found["value"] / 4 == pytest.approx(0.17425, abs=6e-6) and found["policy"] == "index"
    with np.load(tmp_path / "index.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["index"], index_table(get_utility("sum_variance"), (1.0, 1.0), 32))
        assert found["table_bytes"] == file["index"].nbytes
        assert json.loads(file["header"].tobytes())["utility"] == "sum_variance"


def test_uniform_is_kept_where_it_beats_the_index():
    found = run("sum_variance", 2, 4, method="index")
    assert found["policy"] == "uniform" and found["value"] / 2 == pytest.approx(0.0833, abs=5e-5)


@pytest.mark.parametrize("utility", ["sum_variance", "min_variance"])
@pytest.mark.parametrize("method", ["index", "waves"])
def test_large_steps_are_simulated_below_their_bound(utility, method):
    found = json.loads(json.dumps(run(utility, 16, 128, method=method, draws=40)))
    error = found["value_error"]
    assert error > 0 and found["value"] - 3 * error <= found["upper_bound"]
    assert found["value"] > found["uniform_value"]
    assert -3 * error / found["upper_bound"] < found["gap"] < 1 and found["max_per_prompt"] == 64
    if method == "waves":
        sizes = found["mean_wave_sizes"]
        assert sum(sizes) == pytest.approx(128, abs=0.3) and len(sizes) == found["waves"] == 4


def test_the_size_that_the_error_suggests_is_the_largest_that_fits():
    problem = Problem(get_utility("sum_variance"), 32, 256, (1.0, 1.0), None)
    assert [prompts for prompts in range(1, 33) if fits(problem, prompts, 8 * prompts)] == [1, 2, 3, 4, 5, 6]


def test_people_read_percentages_and_words_in_place_of_fractions_and_none():
    found = dict(line.split(maxsplit=1) for line in lines(run("min_variance", 4, 32)))
    assert (found["gain"], found["gap"], found["prior"]) == ("72.5 %", "27.8 %", "Beta(1,1)")
    assert (found["max_per_prompt"], found["waves"], found["states"]) == ("none", "one rollout at a time", "337,013")
    assert (found["value"], found["value_error"]) == ("0.082868", "none, the value is exact")
    assert "None" not in " ".join(lines(run("min_variance", 2, 3)) + lines(run("sum_variance", 2, 6, method="waves")))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"utility": "min_var"}, "min_variance"),
        ({"prompts": 0}, "prompts 0"),
        (
            {"prompts": 12, "budget": 96},
            "use --method index or --method waves, or --budget 43, or --prompts 6 --budget 48$",
        ),
        ({"prompts": 100, "budget": 100}, "is not made beyond 64 prompts; use --method index or --method waves, or"),
        ({"budget": 1_000_000}, "more than 4 GiB; use --budget [0-9]+$"),
        ({"prompts": 2, "budget": 2_000}, "--method waves, or --budget [0-9]+$"),
        ({"method": "index", "budget": 1_000_000}, "budget 1000000: .*give at most 4096$"),
        ({"method": "index", "budget": 1_000}, "max_per_prompt 64 leaves no room: .* at least 250$"),
        ({"method": "waves", "max_per_prompt": 10**6}, "max_per_prompt 1000000: give at most 1024"),
        (
            {"utility": "sum_variance", "prompts": 32, "budget": 256},
            "use --method index or --method waves, or --budget 43, or --prompts 6 --budget 48$",
        ),
        ({"max_per_prompt": 3}, "max_per_prompt 3"),
        ({"prompts": 10**9}, "prompts 1000000000, budget 32: give at most 10000 prompts"),
        ({"method": "waves", "budget": 10**10}, "budget 10000000000: give at most"),
        ({"method": "waves", "waves": 10**20}, "more than the 32 rollouts"),
        ({"method": "indx"}, "index"),
        ({"waves": 4}, "method waves"),
        ({"method": "waves", "waves": 0}, "waves 0"),
        ({"method": "waves", "save": "x.npz"}, "leave no table"),
        ({"method": "index", "save": "/dev/null/x.npz"}, "cannot be written"),
    ],
)
def test_mistakes_name_the_setting(arguments, words):
    with pytest.raises(RollwiseError, match=words):
        run(**arguments)
