"""Every command and every block of code in README.md is run, or resolved as far as it can be without a download."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rollwise.cli.app import status_of
from rollwise.cli.config import RunConfig, read_config


def blocks(repository: Path, language: str) -> list[str]:
    """The fenced code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (repository / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def commands(repository: Path) -> set[str]:
    """The command lines of the README, without their comments."""
    lines = "\n".join(blocks(repository, "bash")).splitlines()
    return {line.split("#")[0].strip() for line in lines} - {""}


def make_plans(target: str, expected: str) -> Callable[[Path, Path], None]:
    def check(repository: Path, finished_run: Path) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        command = ["make", "-n", target]
        done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True, env=environment)
        assert expected in done.stdout

    return check


def ends_well(*arguments: str) -> Callable[[Path, Path], None]:
    def check(repository: Path, finished_run: Path) -> None:
        shutil.copytree(finished_run, "runs/demo")
        assert status_of(arguments) == 0

    return check


def extras_exist(repository: Path, finished_run: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    assert {"train", "report", "cli"} <= set(project["optional-dependencies"])
    assert (repository / "constraints.txt").exists()


def example_resolves(repository: Path, finished_run: Path) -> None:
    config = read_config(repository / "examples" / "smollm2_gsm8k.yaml", {})
    assert config.planned_arms()


COVERED: dict[str, Callable[[Path, Path], None]] = {
    "make demo": make_plans("demo", "rollwise train"),
    "make test": make_plans("test", '-m "not slow"'),
    "pip install -c constraints.txt -e '.[train,report]'": extras_exist,
    "rollwise plan --rates 0:0.3,0.2:0.4,0.8:0.3 --rollouts 8": ends_well(
        "plan", "--rates", "0:0.3,0.2:0.4,0.8:0.3", "--rollouts", "8"
    ),
    "rollwise train": ends_well("train", "--dry-run"),
    "rollwise train --steps 50 --utility sum_variance": ends_well(
        "train", "--steps", "50", "--utility", "sum_variance", "--dry-run"
    ),
    "rollwise train --dry-run": ends_well("train", "--dry-run"),
    "rollwise train --config examples/smollm2_gsm8k.yaml": example_resolves,
    "rollwise report runs/demo": ends_well("report", "runs/demo"),
    "rollwise solve --utility min_variance --prompts 4 --budget 32": ends_well(
        "solve", "--utility", "min_variance", "--prompts", "4", "--budget", "32"
    ),
    "rollwise methods": ends_well("methods"),
    "rollwise evaluate --help": ends_well("evaluate", "--help"),
    "rollwise simulate --help": ends_well("simulate", "--help"),
    "rollwise lab --help": ends_well("lab", "--help"),
    "rollwise analyze --help": ends_well("analyze", "--help"),
    "rollwise doctor": ends_well("doctor"),
    "rollwise --version": ends_well("--version"),
}


def test_every_command_of_the_readme_is_covered_here(repository: Path) -> None:
    assert commands(repository) == set(COVERED)


@pytest.mark.parametrize("command", COVERED)
def test_command(
    command: str, repository: Path, finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    COVERED[command](repository, finished_run)


def test_the_python_blocks_run_as_they_stand(repository: Path, tmp_path: Path) -> None:
    found = blocks(repository, "python")
    assert len(found) == 2
    for block in found:
        done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0.082868 0.048049"


def test_the_configuration_in_the_readme_is_valid(repository: Path) -> None:
    (block,) = blocks(repository, "yaml")
    config = RunConfig.model_validate(yaml.safe_load(block))
    assert [arm.name for arm in config.planned_arms()] == ["uniform", "adaroll"]
