"""Damaged files of a folder of the lab: what can be made again is, what holds results is named."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rollwise.lab import warmup
from rollwise.lab.arms import parse_arms
from rollwise.lab.results import read_results
from rollwise.lab.runs import Experiment, result_path, run_experiment
from rollwise.lab.warmup import Start, prepare_start
from rollwise.types import RollwiseError

from .support import TRAINING, WARMUP

EXPERIMENT = Experiment(parse_arms("uniform"), ("sort",), (0,), replace(TRAINING, steps=1))
RESULT = result_path(Path(), "sort", EXPERIMENT.arms[0], 0)


@pytest.fixture(scope="module")
def whole(start: Start, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    run_experiment(EXPERIMENT, folder, jobs=1, cache=cache)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


RESULTS: dict[str, Any] = {
    "half": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "a list": lambda text: "[]",
    "of nothing": lambda text: '{"task": "sort"}',
    "without evaluation": lambda text: json.dumps(json.loads(text) | {"curve": []}),
    "a word for a number": lambda text: json.dumps(json.loads(text) | {"metrics": {"max_n": "x"}}),
    "of another arm": lambda text: json.dumps(json.loads(text) | {"arm": "nobody"}),
    "too deep": lambda text: "[" * 100_000,
}


@pytest.mark.parametrize("damage", RESULTS)
def test_a_damaged_result_is_named_before_anything_runs(folder: Path, cache: Path, damage: str) -> None:
    path = folder / RESULT
    path.write_text(RESULTS[damage](path.read_text()))
    wider = replace(EXPERIMENT, seeds=(0, 1))
    with pytest.raises(
        RollwiseError, match=r"^out: .*seed-0\.json .*remove it, and rollwise lab makes the run again$"
    ):
        run_experiment(wider, folder, jobs=1, cache=cache)
    if damage != "of another arm":
        with pytest.raises(RollwiseError, match=r"seed-0\.json is damaged"):
            read_results(folder)


def test_a_folder_in_the_place_of_a_result_is_named(folder: Path, cache: Path) -> None:
    (folder / RESULT).unlink()
    (folder / RESULT).mkdir()
    with pytest.raises(RollwiseError, match=r"^out: .*seed-0\.json cannot be read \(Is a directory\); remove it"):
        run_experiment(EXPERIMENT, folder, jobs=1, cache=cache)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"training": null}',
        '{"training": {"warmup": 3}}',
        '{"training": {"warmup": {"x": 1}}}',
        "\x00",
    ],
    ids=["empty", "nothing", "list", "null", "number", "unknown", "binary"],
)
def test_damaged_shared_settings_are_named(folder: Path, cache: Path, text: str) -> None:
    (folder / "experiment.json").write_text(text)
    for read in (lambda: run_experiment(EXPERIMENT, folder, jobs=1, cache=cache), lambda: read_results(folder)):
        with pytest.raises(RollwiseError, match=r"^out: .*experiment\.json is damaged .*give another folder$"):
            read()


def test_a_damaged_saved_run_starts_again(folder: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = json.loads((folder / RESULT).read_text())
    (folder / RESULT).unlink()
    state = (folder / RESULT).with_suffix(".pt")
    state.write_bytes(b"junk")
    (again,) = run_experiment(EXPERIMENT, folder, jobs=1, cache=cache)
    assert [point["sampled"] for point in again["curve"]] == [point["sampled"] for point in before["curve"]]
    said = capsys.readouterr().err
    assert said.startswith(f"rollwise: {state} is damaged (") and said.endswith(
        "kept as seed-0.pt.damaged, and made again\n"
    )
    assert not state.exists()


@pytest.mark.parametrize("keep", [0, 100, 20_000])
def test_a_damaged_checkpoint_is_made_again(
    start: Start,
    cache: Path,
    tmp_path: Path,
    keep: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warmup, "train_supervised", lambda *_: (start.weights, start.steps))
    (path,) = (Path(shutil.copy(path, tmp_path)) for path in cache.glob("sort-*.pt") if "copy" not in path.name)
    path.write_bytes(path.read_bytes()[:keep])
    again = prepare_start(WARMUP, tmp_path)
    assert (again.pool.ids, again.accuracy) == (start.pool.ids, start.accuracy)
    assert f"{path} is damaged (" in capsys.readouterr().err
    assert prepare_start(WARMUP, tmp_path).accuracy == start.accuracy
    assert capsys.readouterr().err == ""


def test_a_cache_that_cannot_be_written_is_named_before_it_trains() -> None:
    with pytest.raises(RollwiseError, match="^ROLLWISE_LAB_CACHE: /dev/null/x cannot be written"):
        prepare_start(WARMUP, "/dev/null/x")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"tasks": ("sort", "sort")}, "task: sort"),
        ({"seeds": (0, 1, 0)}, "seeds: 0"),
        ({"arms": EXPERIMENT.arms * 2}, "methods: uniform"),
    ],
    ids=["tasks", "seeds", "arms"],
)
def test_what_is_given_twice_is_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(RollwiseError, match=f"^{named} is given twice; give each once$"):
        replace(EXPERIMENT, **changes)
