"""Published methods by name in the lab."""

from __future__ import annotations

import pytest

from rollwise.lab.arms import parse_arm
from rollwise.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_every_published_method_is_an_arm(name: str) -> None:
    arm = parse_arm(f"preset.{name}")
    method = PRESETS[name]
    assert (arm.allocator, arm.selector, arm.estimator) == (method.allocator, method.selector, method.advantage)
    assert [curator.name for curator in arm.choose_rows()] == [
        {"live": "dynamic"}.get(curator, curator) for curator in method.curators
    ]


def test_a_name_that_an_allocator_has_stays_that_allocator() -> None:
    assert parse_arm("aero").curator is None
    assert parse_arm("preset.aero").curator == "aero"
    assert parse_arm("replay@curator.share=0.3@lr=0.001").lever_settings == {"curator": {"share": 0.3}}
