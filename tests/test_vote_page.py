"""The numbers on OptPO's page are those of the committed run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def test_numbers_of_the_votes_are_those_of_the_committed_run(repository: Path) -> None:
    found = json.loads((repository / "benchmarks" / "results" / "optpo_labels.json").read_text())
    lines = (repository / "docs" / "methods" / "optpo.md").read_text(encoding="utf-8").replace("`", "").splitlines()
    for name, same in found["same model"].items():
        (line,) = [line for line in lines if line.startswith(f"| {name} |")]
        trained = found["trained"].get(name, {})
        runs = [same["rollouts"], same["right"]]
        runs += [trained[key] for key in ("rollouts", "right", "sampled, own", "sampled, others") if trained]
        shown = [float(cell) for cell in line.split("|")[2:] if cell.strip()]
        assert shown == pytest.approx([sum(run) / len(run) for run in runs], abs=0.0051), name
