"""`rollwise train` end to end, on the embedded model: two arms in their own processes, and what a failure leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import yaml
from rich.console import Console

from rollwise.cli.app import status_of
from rollwise.cli.config import read_config
from rollwise.cli.progress import TrainingProgress, describe
from rollwise.cli.train import budget_words, lever_words, plan
from rollwise.cli.yaml_input import load_yaml

SMALL = ("--steps", "2", "--prompts-per-step", "4", "--rollouts-per-prompt", "4")
FEW_ROWS = ("--set", "data.limit=40", "--set", "eval_data.limit=12", "--set", "evaluation.samples=2")


def rollwise(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from rollwise.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("work")
    return folder / "out", rollwise("train", *SMALL, *FEW_ROWS, "--output", "out", "--json", folder=folder)


def test_json_alone_is_on_standard_output(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = trained
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["rollouts_spent"] == {"uniform": 32, "adaroll": 32}
    assert set(result["evaluation"]["adaroll"]) == {"prompts", "greedy", "sampled", "unknown"}
    assert result["shares"]["uniform"]["dead_prompt_share"] == pytest.approx(
        1 - result["shares"]["uniform"]["informative_rollout_share"]
    )
    assert result["before"]["prompts"] == result["evaluation"]["uniform"]["prompts"] == 12


def test_progress_is_plain_lines_on_standard_error(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    lines = trained[1].stderr.splitlines()
    for arm in ("uniform", "adaroll"):
        last = [line for line in lines if line.startswith(arm) and "step 2/2" in line]
        assert len(last) == 1 and "rollouts 32/32" in last[0]
        assert all(part in last[0] for part in ("reward", "dead prompts", "informative rollouts", "largest n"))
    assert "\x1b" not in trained[1].stderr


def test_the_run_folder_is_complete(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    run, _ = trained
    record = json.loads((run / "run.json").read_text())
    assert record["status"] == "complete" and set(record["arms"]) == {"uniform", "adaroll"}
    assert yaml.safe_load((run / "config.yaml").read_text())["steps"] == 2
    assert "<svg" in (run / "report.html").read_text()
    for arm in ("uniform", "adaroll"):
        assert [json.loads(line)["step"] for line in (run / arm / "metrics.jsonl").open()] == [1, 2]
        assert (run / arm / "model" / "config.json").exists()
        assert (run / arm / "model" / "tokenizer.json").exists()


def test_the_dynamics_of_both_arms_are_logged_and_analyzed(
    trained: tuple[Path, subprocess.CompletedProcess[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["analyze", "dynamics", str(trained[0]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["tasks"]
    assert list(found) == ["chains"] and set(found["chains"]) == {"uniform", "adaroll"}
    for own in found["chains"].values():
        assert [len(own[name]["steps"]) for name in own] == [2, 2, 2]
        assert all(0 < value < 1 for value in own["confidence"]["steps"])
        assert own["mean_abs_advantage"]["steps"] > own["update_weight"]["steps"] >= [0, 0]
    assert status_of(["analyze", "dynamics", str(trained[0])]) == 0
    assert "confidence" in capsys.readouterr().out


def test_the_ledger_and_the_completions_hold_every_rollout_of_every_step(
    trained: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    for arm in ("uniform", "adaroll"):
        lines = [json.loads(line) for line in (trained[0] / arm / "rollwise" / "ledger.jsonl").open()]
        assert Counter(line["step"] for line in lines if line["type"] == "rollout") == {0: 16, 1: 16}
        tables = [pd.read_parquet(path) for path in sorted((trained[0] / arm / "completions").glob("*.parquet"))]
        assert [len(table) for table in tables] == [16, 16]


def test_the_trained_model_can_be_trained_on(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    assert status_of(["train", "--model", str(trained[0] / "adaroll" / "model"), "--dry-run"]) == 0


def test_the_report_can_be_rebuilt(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    run, _ = trained
    (run / "report.html").unlink()
    done = rollwise("report", "out", folder=run.parent)
    assert (done.returncode, done.stdout.strip()) == (0, "report: out/report.html")
    assert (run / "report.html").exists()


def test_an_adapter_is_trained_saved_and_merged_into_a_model_that_can_be_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = (*SMALL, "--no-compare-uniform", "--output", "out", "--set", "lora={r: 4, alpha: 8}", *FEW_ROWS)
    assert status_of(["train", *arguments]) == 0
    adapter = json.loads((tmp_path / "out" / "adaroll" / "adapter" / "adapter_config.json").read_text())
    assert (adapter["r"], adapter["lora_alpha"]) == (4, 8)
    model = tmp_path / "out" / "adaroll" / "model"
    assert not (model / "adapter_config.json").exists()
    assert status_of(["train", "--model", str(model), "--dry-run"]) == 0


def test_a_reward_that_ends_the_program_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaving.py").write_text("import sys\ndef score(completions, **kwargs):\n    sys.exit(0)\n")
    arguments = (*SMALL, "--no-compare-uniform", "--reward", "leaving:score", "--output", "out")
    assert status_of(["train", *arguments, "--set", "eval_data=null"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("rollwise: arm adaroll: a reward function or the model's code ended the program")


def test_a_reward_that_fails_while_training_marks_the_run_failed_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def score(completions, **kwargs):\n    raise KeyError('target')\n")
    arguments = (
        *SMALL,
        "--no-compare-uniform",
        "--reward",
        "mine:score",
        "--output",
        "out",
        "--set",
        "eval_data=null",
    )
    assert status_of(["train", *arguments]) == 2
    err = capsys.readouterr().err
    last = err.splitlines()[-1]
    assert last.startswith("rollwise: ") and "score" in last and "KeyError" in last
    assert "Traceback" not in err
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["status"] == "failed" and "score" in record["error"]
    assert not (tmp_path / "out" / "report.html").exists()


def test_an_arm_that_dies_is_unexpected_and_points_at_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deadly.py").write_text("import os\ndef score(completions, **kwargs):\n    os._exit(7)\n")
    arguments = (*SMALL, "--no-compare-uniform", "--reward", "deadly:score", "--output", "out")
    assert status_of(["train", *arguments, "--set", "eval_data=null"]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "rollwise: arm adaroll failed: the process ended with status 7 (log: out/adaroll/log.txt)"
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "failed"


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupting_stops_the_arms_and_says_so(tmp_path: Path, ending: signal.Signals) -> None:
    command = [sys.executable, "-c", "from rollwise.cli import main; main()", "train", *SMALL, "--steps", "100000"]
    process = subprocess.Popen(
        [*command, "--output", "out", "--set", "eval_data=null", "--no-compare-uniform"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(ending, signal.SIG_DFL),  # a shell's background jobs ignore Ctrl-C
    )
    metrics = tmp_path / "out" / "adaroll" / "metrics.jsonl"
    deadline = time.monotonic() + 400
    while not (metrics.exists() and metrics.stat().st_size):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(ending)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "rollwise: interrupted"
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "interrupted"
    assert not arms_alive(tmp_path / "out")


def arms_alive(run: Path) -> list[str]:
    """Command lines of processes that work on this run folder (read from /proc where there is one)."""
    alive = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            line = Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ").decode()
            place = os.readlink(f"/proc/{entry}/cwd")
        except (OSError, ValueError):
            continue
        if "rollwise.cli.arm" in line and place == str(run.parent):
            alive.append(line)
    return alive


def test_a_step_is_described_by_what_was_measured() -> None:
    event = {
        "rollwise/reward_first_wave": 0.5,
        "rollwise/dead_prompt_share": 0.25,
        "rollwise/max_n": 12.0,
        "reward": 1,
    }
    assert describe(event) == "reward 0.500  dead prompts  25%  largest n  12"
    assert describe({"reward": 0.25}) == "reward 0.250"


def measured(dead: float, informative: float) -> dict[str, float]:
    shares = {"rollwise/dead_prompt_share": dead, "rollwise/informative_rollout_share": informative}
    return {"step": 60, "seconds": 61.0, "reward": 0.5, "rollwise/max_n": 48.0, **shares}


def test_lines_of_several_arms_stand_under_each_other() -> None:
    low, high = describe(measured(0.0, 1.0)), describe(measured(0.38, 0.07))
    for label in ("dead prompts", "informative rollouts", "largest n"):
        assert low.index(label) == high.index(label)
    assert len(low) == len(high)


def test_bars_on_a_terminal_of_80_columns_show_every_number_and_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(force_terminal=True, width=80, color_system=None)
    with TrainingProgress(["uniform", "adaroll"], steps=60, budget=256, console=console) as progress:
        progress.step("uniform", measured(0.0, 1.0))
        progress.step("adaroll", measured(0.38, 0.07))
    head, names, uniform, adaroll = capsys.readouterr().out.splitlines()[-5:-1]
    assert head.split()[-3:] == ["dead", "informative", "largest"]
    assert names.split() == ["arm", "step", "reward", "prompts", "rollouts", "n", "time"]
    assert adaroll.split()[2:] == ["60/60", "0.500", "38%", "7%", "48", "0:00:00"]
    assert max(map(len, (names, uniform, adaroll))) <= 80
    assert [uniform.index("%"), len(uniform)] == [adaroll.index("%"), len(adaroll)]


def test_lines_above_the_bars_break_between_words_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    words = "word-with-hyphens " * 9
    for terminal, lines in ((True, 3), (False, 1)):
        TrainingProgress(["a"], 4, 8, console=Console(force_terminal=terminal, width=80, color_system=None)).say(words)
        out = capsys.readouterr().out
        assert len(out.splitlines()) == lines and set(out.split()) == {"word-with-hyphens"}


def test_an_arm_that_may_spend_more_is_shown_without_a_total(capsys: pytest.CaptureFixture[str]) -> None:
    event = measured(0.38, 0.07) | {"rollwise/rollouts_spent": 480}
    with TrainingProgress(["dapo", "uniform"], 60, 4, ["dapo"], Console(width=200)) as progress:
        progress.step("dapo", event)
        progress.step("uniform", event)
    dapo, uniform = capsys.readouterr().out.splitlines()
    assert "rollouts 480  " in dapo and "rollouts 480/240  " in uniform
    assert dapo.index("reward") == uniform.index("reward")


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("dapo", "60 steps, at least 15,360 rollouts an arm: dapo samples until a batch is live"),
        ("greso", "60 steps, at least 15,360 rollouts an arm: greso samples until a batch is live"),
        ("dapo_capped", "60 steps, 15,360 rollouts an arm"),
        ("{preset: dapo, curator_settings: {dynamic: {rounds: 1}}}", "60 steps, 15,360 rollouts an arm"),
        ("cero", "60 steps, 15,360 rollouts an arm"),
    ],
)
def test_the_budget_says_where_an_update_may_cost_more_than_a_step(method: str, words: str) -> None:
    alone = read_config(None, {"method": load_yaml(method, "method"), "compare_uniform": False})
    assert budget_words(alone) == words
    beside = read_config(None, {"method": load_yaml(method, "method"), "compare_uniform": True})
    assert budget_words(beside) == words + "; the arms spend differently" * ("at least" in words)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("cero", ", selector cero, advantage grpo"),
        ("greso", ", selector greso, curators dynamic, advantage grpo"),
        ("reinforce_ada", ", curators balanced, advantage global_baseline"),
        ("{preset: replay, curators: pods/replay}", ", curators pods then replay, advantage grpo"),
        ("{allocator: uniform}", ""),
    ],
)
def test_an_arm_is_described_by_every_lever_it_sets(method: str, words: str) -> None:
    (arm,) = read_config(None, {"method": load_yaml(method, "method"), "compare_uniform": False}).planned_arms()
    assert lever_words(arm) == words


def test_the_summary_fits_in_80_columns() -> None:
    lines = plan(read_config(None, {"method.objective": "pass@4", "method.utility": "min_squared_advantage"}))
    assert max(map(len, lines)) < 80
    assert "budget       60 steps, 15,360 rollouts an arm" in lines
    assert "model        embedded, training all weights" in lines
    assert "model        embedded, training an adapter (LoRA, r 4)" in plan(read_config(None, {"lora.r": 4}))
