"""`rollwise analyze difficulty` with a model that is sampled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rollwise.cli.app import status_of

CALL = ["analyze", "difficulty", "--model", "embedded", "--data", "chains", "--prompts", "6", "--limit", "4"]


def test_only_unsolved_prompts_are_sampled_further(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "difficulty.png"
    assert status_of([*CALL, "--figure", str(picture), "--json"]) == 0
    captured = capsys.readouterr()
    (entry,) = json.loads(captured.out)["pools"].values()
    first = entry["first_solved"]
    assert len(first) == entry["prompts"] == 6 and entry["unknown"] == 0.0
    asked = {1: 1, 2: 2, 3: 4, 4: 4, None: 4}
    assert entry["rollouts"] == pytest.approx(sum(asked[at] for at in first) / 6)
    shares = [sum(at in bin_ for at in first) / 6 for bin_ in ((1,), (2,), (3, 4), (None,))]
    assert entry["shares"] == pytest.approx(shares)
    assert "6 prompts unsolved, 1 more rollouts each" in captured.err
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (["--pool", "hard"], "--pool: not with a model"),
        (["--prompts", "0"], "prompts: 0"),
        (["--limit", "5"], "limit: 5"),
    ],
)
def test_what_does_not_fit_is_one_line(flags: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of([*CALL, *flags]) == 2
    error = capsys.readouterr().err
    assert part in error and "Traceback" not in error
