"""Experiments: complete, paired, resumable, and the same in one process or in two."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rollwise.lab.arms import parse_arms
from rollwise.lab.runs import Experiment, run_experiment
from rollwise.lab.warmup import Start
from rollwise.types import RollwiseError

from .support import TRAINING

EXPERIMENT = Experiment(parse_arms("uniform,sum_max_reward"), ("sort",), (0,), TRAINING)


def untimed(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    drop = ("seconds", "generating_seconds", "wall_seconds")
    return [
        {key: value for key, value in result.items() if key not in drop}
        | {"curve": [{key: value for key, value in point.items() if key not in drop} for point in result["curve"]]}
        for result in results
    ]


@pytest.fixture(scope="module")
def finished(start: Start, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("experiment")
    return folder, run_experiment(EXPERIMENT, folder, jobs=1, cache=cache)


def test_every_arm_and_seed_has_a_result_and_a_line(finished: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, results = finished
    assert [(row["task"], row["arm"], row["seed"]) for row in results] == [
        ("sort", "uniform", 0),
        ("sort", "sum_max_reward", 0),
    ]
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert [line["arm"] for line in lines] == ["uniform", "sum_max_reward"]
    assert all(line["rollouts"] == 96 and line["metrics"]["rollouts"] == 24 for line in lines)
    assert results[0]["curve"][0]["sampled"] == results[1]["curve"][0]["sampled"]
    assert json.loads((folder / "experiment.json").read_text())["machine"]["cores"] >= 1
    assert not list(folder.rglob("*.pt")) and not list(folder.rglob("*.part"))


def test_what_is_done_is_not_run_again(finished: tuple[Path, list[dict[str, Any]]], cache: Path) -> None:
    folder, results = finished
    told: list[str] = []
    again = run_experiment(
        EXPERIMENT, folder, jobs=1, cache=cache, report=lambda result, done, runs: told.append(result["arm"])
    )
    assert again == results and told == []
    wider = replace(EXPERIMENT, arms=parse_arms("uniform,sum_max_reward,uniform@lr=1e-3"))
    assert len(run_experiment(wider, folder, jobs=1, cache=cache, report=lambda r, d, n: told.append(r["arm"]))) == 3
    assert told == ["uniform@lr=1e-3"]


def test_a_folder_of_other_settings_is_refused(finished: tuple[Path, list[dict[str, Any]]], cache: Path) -> None:
    folder, _ = finished
    other = replace(EXPERIMENT, training=replace(TRAINING, rollouts=8))
    with pytest.raises(RollwiseError, match="holds runs with rollouts 4, not 8; give another folder"):
        run_experiment(other, folder, jobs=1, cache=cache)


def test_two_processes_give_the_results_of_one(
    finished: tuple[Path, list[dict[str, Any]]], cache: Path, tmp_path: Path
) -> None:
    results = run_experiment(EXPERIMENT, tmp_path, jobs=2, cache=cache)
    assert untimed(results) == untimed(finished[1])
