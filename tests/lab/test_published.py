"""Published methods by name in the lab: every one runs, at equal rollouts by the ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rollwise.lab.arms import parse_arm
from rollwise.lab.loop import Run
from rollwise.lab.published import published_arms, unfold
from rollwise.lab.warmup import Start
from rollwise.ledger import Ledger
from rollwise.presets import PRESETS
from rollwise.types import RollwiseError

from .support import TRAINING

SMOKE = replace(TRAINING, steps=2, evaluate_every=1)
LINES = (*published_arms(), "uniform@selector=passes", "min_variance@selector=mopps@curator=replay/codapo")


@pytest.mark.parametrize("name", PRESETS)
def test_every_published_method_is_an_arm(name: str) -> None:
    arm = parse_arm(f"preset.{name}")
    method = PRESETS[name]
    assert (arm.allocator, arm.selector, arm.estimator) == (method.allocator, method.selector, method.advantage)
    assert {key: getattr(arm, key) for key in method.step} == method.step
    assert [curator.name for curator in arm.choose_rows()] == [
        {"live": "dynamic"}.get(curator, curator) for curator in method.curators
    ]


def test_a_name_that_an_allocator_has_stays_that_allocator() -> None:
    assert parse_arm("aero").curator is None
    assert parse_arm("preset.aero").curator == "aero"
    assert parse_arm("replay@curator.share=0.3@lr=0.001").lever_settings == {"curator": {"share": 0.3}}
    assert "preset.aero" in published_arms() and "cero" in published_arms()


def test_a_method_keeps_the_settings_of_its_levers_and_a_line_adds_to_them() -> None:
    method = replace(PRESETS["replay"], selector="mopps", selector_settings={"target": 0.4})
    assert unfold(method)[2]["lever_settings"] == {"selector": {"target": 0.4}}


def test_a_method_that_sets_what_the_lab_has_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "replay", replace(PRESETS["replay"], step={"quantum": 2}))
    with pytest.raises(RollwiseError, match="methods: replay sets quantum, which the lab has not; "):
        parse_arm("replay")


@pytest.mark.parametrize("line", LINES)
def test_every_published_method_ends_at_the_same_rollouts_by_the_ledger(
    line: str, start: Start, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    run = Run(parse_arm(line), SMOKE, start, ledger=ledger)
    result = run.finish()
    assert result["rollouts"] == ledger.paid == 2 * 24
    # what a rule saves goes into further steps
    assert result["steps"] >= 2 and result["curve"][-1]["rollouts"] == 48
    assert all(np.isfinite(list(run.model.parameters())[0].detach().numpy()).ravel())


def test_labels_by_majority_reward_the_answer_most_of_a_group_gave(start: Start) -> None:
    record = Run(parse_arm("preset.optpo"), TRAINING, start).step()
    for group in record.prompt_ids:
        rows = [row for row in record.rollouts if row.group_id == group]
        said = [row.answer for row in rows if row.answer]
        leaders = {answer for answer in said if said.count(answer) == max(map(said.count, said))}
        assert len({row.answer for row in rows if row.reward == 1.0}) == 1
        assert all(row.answer in leaders for row in rows if row.reward == 1.0)


def test_gradient_norms_are_reported_while_a_decision_follows(start: Start) -> None:
    record = Run(parse_arm("preset.gvm"), TRAINING, start).step()
    assert record.waves == 2
    assert all((row.gradient_norm is None) == (row.wave == 1) for row in record.rollouts)
    assert all(row.gradient_norm > 0 for row in record.rollouts if row.wave == 0)
