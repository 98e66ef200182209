"""Selectors and curators in the simulator, and published methods by name."""

from __future__ import annotations

import pytest

from rollwise.presets import PRESETS
from rollwise.simulate.methods import parse_method
from rollwise.simulate.runner import Setting, run_arm
from rollwise.types import RollwiseError

SETTING = Setting(pool="beta:0.4,0.4", prompts=8, budget=64, steps=6, population=40, drift=0.2, transfer=0.1)


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in ("vip", "vip_dr_grpo")])
def test_every_published_method_runs_within_the_budget(name: str) -> None:
    result = run_arm(SETTING, parse_method(f"preset.{name}"), seed=0)
    assert 0 < result["paid"] <= 6 * 64
    assert 0 <= result["means"]["rollouts_trained_on"] <= 64


def test_levers_are_mixed_in_a_line() -> None:
    method = parse_method("min_variance@selector=mopps@curator=pods/replay@selector.candidates=3")
    selector = method.choose_prompts(6, 0)
    assert selector is not None
    assert selector.name == "mopps"
    assert [curator.name for curator in method.choose_rows()] == ["pods", "replay"]
    plain, mixed = (run_arm(SETTING, parse_method(text), 1)["means"] for text in ("min_variance", method.label))
    assert mixed["rollouts_trained_on"] < plain["rollouts_trained_on"]


def test_a_name_that_only_a_method_has_needs_no_prefix() -> None:
    assert parse_method("cero").levers == (("selector", "cero"),)
    assert parse_method("aero").levers == ()
    assert parse_method("preset.aero").levers == (("curator", "aero"),)


def test_mopps_finds_middling_prompts() -> None:
    calm = Setting(pool="beta:0.4,0.4", prompts=8, budget=64, steps=30, population=64)
    shares = {
        name: run_arm(calm, parse_method(name), 2)["means"]["dead_prompt_share"] for name in ("uniform", "mopps")
    }
    assert shares["mopps"] < shares["uniform"] - 0.1


def test_a_selector_needs_a_population() -> None:
    with pytest.raises(RollwiseError, match="population"):
        run_arm(Setting(steps=2), parse_method("cero"), 0)
