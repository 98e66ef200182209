"""`rollwise lab` from its flags to its table, and one line for every mistake."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from rollwise.cli import lab
from rollwise.cli.app import status_of
from rollwise.types import RollwiseError

SMALL = [
    "--task",
    "sort",
    "--target",
    "0.02",
    "--pool-size",
    "32",
    "--steps",
    "2",
    "--prompts",
    "4",
    "--rollouts",
    "4",
]


def test_the_command_ends_in_one_json_object(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWISE_LAB_CACHE", str(cache))
    flags = ["--methods", "uniform,adaroll:sum_max_reward", "--set", "loss=dapo", "--seeds", "1", "--jobs", "1"]
    assert status_of(["lab", *SMALL, *flags, "--out", str(tmp_path / "out"), "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["budget"] == 16 and found["seeds"] == [0]
    assert [row["arm"] for row in found["summary"]] == ["uniform", "adaroll:sum_max_reward"]
    assert all(row["rollouts"] == 32 for row in found["summary"])
    assert "run 2/2: sort seed 0 adaroll:sum_max_reward" in captured.err

    console = Console(width=80, record=True, file=io.StringIO())
    console.print(lab.table(found))
    text = console.export_text()
    assert "adaroll:sum_max_reward" in text and "sort, 1 seeds" in text


def test_a_folder_that_cannot_be_written_is_named_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["lab", *SMALL, "--out", "/dev/null/x"]) == 2
    assert capsys.readouterr().err.startswith("rollwise: out: /dev/null/x cannot be written (")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--task", "chainz"], "task: no 'chainz'; did you mean 'chains'"),
        (["--methods", "uniform,adarol"], "did you mean 'adaroll'"),
        (["--seeds", "none"], "seeds: 'none'; give how many"),
        (["--until", "token"], "until: no 'token'; did you mean 'tokens'"),
        (["--until", "tokens"], "tokens: None a step until tokens; give both"),
        (["--until", "tokens", "--tokens", "10"], "tokens: 10 a step for 256 rollouts; give one each or more"),
        (["--methods", "min_variance@budget=tokens"], "budget: tokens, but the run ends by rollouts"),
        (["--methods", "uniform@budget=tokens"], "budget: uniform spends rollouts, not tokens"),
        (["--size", "huge"], "size: no 'huge'"),
        (["--jobs", "0"], "jobs: 0 processes; give 1 or more"),
        (["--seeds", f"{10**20}-{10**20}"], "up to 9999999"),
        (["--baseline", "other"], "baseline: 'other' is not among the methods"),
        (["--prompts", "2000"], "prompts: 2000 a step from a pool of 1024"),
        (["--rollouts", "1"], "n_min"),
        (["--task", "sort", "--task", "chains,sort"], "task: sort is given twice"),
        (["--set", "waves"], "set: 'waves' is no setting; give key=value, such as waves=8"),
        (["--set", "=3"], "set: '=3' is no setting; give key=value"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing_behind(
    flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert status_of(["lab", *flags, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and error.startswith("rollwise: ")
    assert not out.exists()


def test_seeds_are_a_number_or_a_range() -> None:
    assert lab.read_seeds("3") == (0, 1, 2)
    assert lab.read_seeds("10-12") == (10, 11, 12)
    for wrong in ("0", "3-1", "a"):
        with pytest.raises(RollwiseError, match="seeds: "):
            lab.read_seeds(wrong)
