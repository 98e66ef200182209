"""`rollwise solve` gives the published numbers and messages for people."""

from __future__ import annotations

import json

import pytest

from rollwise.cli.solve import run
from rollwise.types import RollwiseError


def test_the_result_is_json_with_the_published_values():
    found = json.loads(json.dumps(run("min_squared_advantage", 2, 16, advantage_form="normalised")))
    assert found["value"] == pytest.approx(5.436898, abs=5.1e-7)
    assert found["uniform_value"] == pytest.approx(4.839506, abs=5.1e-7)
    assert found["gain"] == pytest.approx(5.436898 / 4.839506 - 1, abs=1e-6)
    assert (found["utility"], found["prompts"], found["budget"]) == ("min_squared_advantage", 2, 16)
    assert found["prior"] == [1.0, 1.0] and found["states"] == 755 and found["seconds"] > 0


def test_without_a_uniform_value_there_is_no_gain():
    assert run("min_variance", 2, 3)["gain"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"utility": "min_var"}, "min_variance"),
        ({"prompts": 0}, "prompts 0"),
        ({"prompts": 12, "budget": 96}, "memory_limit"),
        ({"n_max": 3}, "n_max 3"),
    ],
)
def test_mistakes_name_the_setting(arguments, words):
    with pytest.raises(RollwiseError, match=words):
        run(**arguments)
