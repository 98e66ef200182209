"""What finished runs of the lab say beyond their final accuracy: `rollwise analyze gain | dynamics | curves`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from rollwise.cli.app import status_of
from rollwise.lab.arms import parse_arms
from rollwise.lab.entropy import gains, start_pool
from rollwise.lab.measure import success_rates
from rollwise.lab.results import read_results
from rollwise.lab.runs import Experiment, run_experiment
from rollwise.lab.tasks import get_task
from rollwise.lab.warmup import Start, load_model
from rollwise.types import RollwiseError

from .support import TRAINING, WARMUP


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cache: Path, start: Start) -> Path:
    out = tmp_path_factory.mktemp("runs")
    experiment = Experiment(parse_arms("uniform,min_squared_advantage"), (WARMUP.task,), (WARMUP.seed,), TRAINING)
    run_experiment(experiment, out, jobs=1, cache=cache)
    return out


def test_the_pool_is_the_warm_models_rates(cache: Path, start: Start) -> None:
    task = get_task(WARMUP.task)
    rates = success_rates(load_model(task, WARMUP.size, start.weights), task, start.pool)
    pool = start_pool(WARMUP, cache)
    assert pool.mean == pytest.approx(rates.mean())
    assert pool.unsolved_share(4) == pytest.approx(np.mean((1 - rates) ** 4))


def test_gain_is_relative_to_uniform_of_the_same_seed(folder: Path, cache: Path) -> None:
    (row,) = gains(folder, limit=8, cache=cache)
    ends = {result["arm"]: result["curve"][-1]["sampled"] for result in read_results(folder)[1]}
    expected = ends["min_squared_advantage"] / ends["uniform"] - 1
    assert row["gain"] == {"min_squared_advantage": {"mean": pytest.approx(expected), "seeds": 1}}
    assert 0 < row["entropy"] < 1


def test_there_is_no_gain_over_an_accuracy_of_nothing(folder: Path, cache: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    (path,) = copy.glob("*/uniform-*/seed-*.json")
    result = json.loads(path.read_text())
    result["curve"][-1]["sampled"] = 0.0
    path.write_text(json.dumps(result))
    assert [row["gain"] for row in gains(copy, limit=8, cache=cache)] == [{}]


def test_commands_give_json_and_figures(
    folder: Path, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWISE_LAB_CACHE", str(cache))
    for name in ("gain", "dynamics"):
        picture = tmp_path / f"{name}.png"
        assert status_of(["analyze", name, str(folder), "--figure", str(picture), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found.get("correlation", "") is None or "sort" in found["tasks"]
        assert picture.stat().st_size > 1000
        assert status_of(["analyze", name, str(folder)]) == 0
        assert "sort" in capsys.readouterr().out
    assert status_of(["analyze", "curves", str(folder), "--figure", str(tmp_path / "curves.png")]) == 0
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_dynamics_has_every_step_of_every_arm(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["analyze", "dynamics", str(folder), "--json"]) == 0
    arms = json.loads(capsys.readouterr().out)["tasks"]["sort"]
    assert set(arms) == {"uniform", "min_squared_advantage"}
    for own in arms.values():
        assert set(own) == {"confidence", "mean_abs_advantage", "update_weight"}
        assert all(len(entry["steps"]) == TRAINING.steps for entry in own.values())
        assert 0 < own["confidence"]["change"]["last"] <= 1


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RollwiseError, match="holds no runs of the lab"):
        read_results(tmp_path)
