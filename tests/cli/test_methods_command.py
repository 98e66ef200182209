"""`rollwise methods`, and methods by name in a run's file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollwise.cli.app import status_of
from rollwise.cli.config import RunConfig
from rollwise.cli.trainer_settings import preset_options
from rollwise.presets import PRESETS

DATA = {"data": {"source": "x.jsonl", "columns": {"prompt": "q", "answer": "a"}}}


def test_methods_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["methods"]) == 0
    shown = capsys.readouterr().out
    for name, method in PRESETS.items():
        assert f"  {name} " in shown
        assert method.source in shown


def test_methods_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["methods", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    by_name = {entry["name"]: entry for entry in found["methods"]}
    assert by_name["greso"]["selector"] == "greso"
    assert by_name["greso"]["curators"] == ["dynamic"]
    assert set(found["selectors"]) >= {"cero", "mopps", "greso", "resampling"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"method": "cero"}, {"preset": "cero", "allocator": "uniform", "selector": "cero"}),
        (
            {"method": {"allocator": "adaroll", "selector": "cero", "curators": "pods/replay"}},
            {"allocator": "adaroll", "selector": "cero", "curators": ["pods", "replay"]},
        ),
        (
            {"method": "adaroll", "selector": "mopps", "curator": ["replay"]},
            {"preset": "adaroll", "allocator": "adaroll", "selector": "mopps", "curators": ["replay"]},
        ),
        ({"method": "knapsack"}, {"prior": "carried"}),
    ],
)
def test_a_method_is_named_in_one_word_or_mixed(given: dict[str, Any], expected: dict[str, Any]) -> None:
    config = RunConfig.model_validate(DATA | given)
    found = config.method.model_dump()
    assert {key: found[key] for key in expected} == expected
    (arm,) = config.planned_arms()
    assert {key: arm.model_dump()[key] for key in expected} == expected


def test_uniform_is_compared_with_a_selector_too() -> None:
    config = RunConfig.model_validate(DATA | {"method": "cero", "compare_uniform": True})
    plain, cero = config.planned_arms()
    assert (plain.selector, plain.curators, plain.name) == (None, None, "uniform")
    assert (cero.selector, cero.name) == ("cero", "cero")


def test_a_preset_brings_its_loss() -> None:
    assert preset_options("dapo")["epsilon_high"] == 0.28
    assert preset_options(None) == {}


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'cero'"):
        RunConfig.model_validate(DATA | {"method": "cerro"})
