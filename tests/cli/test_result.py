"""The closing lines of a run: both arms' shares, and what one seed cannot show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rollwise.cli.result import fold, mean_shares, result_lines


def result(*arms: str) -> dict[str, Any]:
    return {
        "run": "runs/demo",
        "report": None,
        "rollouts_spent": dict.fromkeys(arms, 15360),
        "rollouts_lost": dict.fromkeys(arms, 0),
        "seconds": dict.fromkeys(arms, 45.0),
        "before": None,
        "evaluation": {arm: {"prompts": 500, "greedy": 0.94, "sampled": 0.84} for arm in arms},
        "shares": {
            arm: {"dead_prompt_share": 0.47 - k / 10, "informative_rollout_share": 0.53 - k / 20}
            for k, arm in enumerate(arms)
        },
    }


def test_two_arms_end_with_their_shares_and_a_warning_about_one_seed() -> None:
    lines = result_lines(result("uniform", "adaroll"))
    assert "dead prompts: uniform 47.0%, adaroll 37.0%" in lines
    assert "informative rollouts: uniform 53.0%, adaroll 48.0%" in lines
    assert "one seed: a difference in accuracy of a few points is noise" in " ".join(lines)
    assert lines[0] == "uniform: 15,360 rollouts in 45 s, greedy 0.940, sampled 0.840"
    assert lines[-1] == "run folder: runs/demo"
    assert max(map(len, lines)) < 80


def test_rollouts_that_a_stop_lost_are_counted_beside_those_spent() -> None:
    stopped = result("adaroll") | {"rollouts_lost": {"adaroll": 1024}}
    said = " ".join(result_lines(stopped))
    assert said.startswith("adaroll: 15,360 rollouts (1,024 more lost to a stop and made again) in 45 s, greedy")


def test_one_arm_is_compared_to_nothing() -> None:
    assert result_lines(result("adaroll"))[1:] == ["run folder: runs/demo"]


def test_shares_are_means_over_the_steps_that_logged_them(tmp_path: Path) -> None:
    rows = [
        {"step": 1, "rollwise/dead_prompt_share": 0.5},
        {"step": 2},
        {"step": 3, "rollwise/dead_prompt_share": 0.25},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert mean_shares(tmp_path / "metrics.jsonl") == {"dead_prompt_share": pytest.approx(0.375)}


def test_folding_never_breaks_a_word() -> None:
    path = "runs/" + "x-" * 60
    assert fold(f"folder {path}", indent=7) == ["folder", " " * 7 + path]
