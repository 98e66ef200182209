"""The page's commands are valid, and its example runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from rollwise.cli.app import status_of
from rollwise.lab import runs
from rollwise.lab.runs import Experiment
from rollwise.lab.tasks import TASKS
from rollwise.types import RollwiseError


def blocks(repository: Path, language: str) -> list[str]:
    text = (repository / "docs" / "lab.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_every_command_of_the_page_is_understood(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Experiment] = []

    def stop(experiment: Experiment, *_: Any, **__: Any) -> None:
        seen.append(experiment)
        raise RollwiseError("understood")

    monkeypatch.setattr(runs, "run_experiment", stop)
    commands = [line for line in "".join(blocks(repository, "bash")).splitlines() if line.strip()]
    for command in commands:
        words = shlex.split(command, comments=True)
        assert words[:2] == ["rollwise", "lab"] and status_of(words[1:]) == 2
        assert capsys.readouterr().err == "rollwise: understood\n"
    assert len(seen) == len(commands) == 7
    assert seen[1].tasks == ("chains", "division") and seen[1].seeds == tuple(range(10))
    assert [arm.loss for arm in seen[3].arms] == ["dr_grpo"] * 2 and seen[3].training.warmup.pool == "skewed"


def test_the_example_runs_at_a_smaller_size(
    repository: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROLLWISE_LAB_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(repository, "python")
    for large, small in (
        ('("chains", "division")', '("sort",)'),
        ("range(10)", "range(1)"),
        ("Warmup(target=0.4), steps=300, prompts=32", "Warmup(target=0.02, pool_size=32), steps=2, prompts=4"),
        ("jobs=2", "jobs=1"),
    ):
        assert large in code
        code = code.replace(large, small)
    exec(code, {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines][:2] == ["uniform", "sum_variance"] and len(lines) == 3


def test_the_page_names_every_task(repository: Path) -> None:
    text = (repository / "docs" / "lab.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in TASKS)
