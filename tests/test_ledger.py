"""The ledger: everything paid for, nothing lost by a kill, nothing accepted that is no ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.allocators import Uniform
from rollwise.ledger import Ledger
from rollwise.ledger_lines import read_line, read_rollout, rollout_line, wave_line
from rollwise.step import Step
from rollwise.types import Outcome, Rollout, RollwiseError


def run_step(ledger: Ledger, index: int = 0) -> None:
    step = Step(["a", "b"], Uniform(), 8, rng=np.random.default_rng(0), index=index, waves=2, ledger=ledger)
    while wave := step.next_wave():
        step.observe(*(rollout.result(1, answer="3", tokens=5) for rollout in wave.rollouts))
    step.close()


def test_reopening_continues_the_count(tmp_path: Path) -> None:
    run_step(Ledger(tmp_path / "l.jsonl"), 0)
    again = Ledger(tmp_path / "l.jsonl")
    run_step(again, 1)
    assert (again.paid, again.last_step) == (16, 1)
    assert Ledger(tmp_path / "l.jsonl").paid == 16


def test_memory_holds_one_step_only(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.jsonl")
    for index in range(3):
        run_step(ledger, index)
    assert len(ledger.known(2)) == 8
    assert ledger.known(0) == {}


def test_wherever_a_kill_cuts_the_file_it_opens_again(tmp_path: Path) -> None:
    run_step(Ledger(tmp_path / "l.jsonl"))
    raw = (tmp_path / "l.jsonl").read_bytes()
    for cut in range(0, len(raw), 37):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(raw[:cut])
        ledger = Ledger(path)
        assert ledger.paid in (0, 4, 8)
        run_step(ledger)
        assert ledger.paid == 8
        assert Ledger(path).paid == 8


@pytest.mark.parametrize(
    "line", ["{}", "[1]", "not json", '{"type": "wave", "step": "x"}', '{"type":"rollout","step":0}']
)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, line: str) -> None:
    path = tmp_path / "l.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(RollwiseError, match=r"^ledger: .*l\.jsonl line 1 is not a ledger line"):
        Ledger(path)
    assert path.read_text() == line + "\n"


def test_a_rewind_counts_what_was_lost_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.jsonl")
    for index in range(3):
        run_step(ledger, index)
    assert ledger.rewind(1) == 16
    assert ledger.rewind(1) == 0
    run_step(ledger, 1)
    again = Ledger(tmp_path / "l.jsonl")
    assert again.paid == 3 * 8 + 8
    assert again.rewind(1) == 8


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), "holds 0 rollouts, 16 were paid for when the checkpoint was saved; put back"),
        (lambda path: path.write_bytes(path.read_bytes()[:900]), "holds 4 rollouts, 16 were paid for"),
        (
            lambda path: path.write_text(path.read_text().replace('"3"', '"4"')),
            "holds 24 rollouts, 16 .*, and not the",
        ),
    ],
    ids=["missing", "shortened", "another"],
)
def test_a_ledger_goes_on_from_a_mark_only_where_it_holds_what_it_held(
    tmp_path: Path, damage: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "l.jsonl"
    ledger = Ledger(path)
    for index in range(2):
        run_step(ledger, index)
    mark = ledger.mark()
    run_step(ledger, 2)
    ledger.close()
    assert Ledger.reopen(path, mark).mark()["rollouts"] == 24
    assert Ledger(path).mark() == ledger_of(path)
    damage(path)
    with pytest.raises(RollwiseError, match=f"^ledger: .*l.jsonl {words}"):
        Ledger.reopen(path, mark)


def ledger_of(path: Path) -> dict[str, Any]:
    """The mark of a whole file, three steps of 8 rollouts."""
    content = path.read_bytes()
    return {"bytes": len(content), "digest": sha256(content).hexdigest(), "rollouts": 24}


@given(
    outcome=st.sampled_from(list(Outcome)),
    reward=st.none() | st.floats(-5, 5),
    answer=st.none() | st.text(),
    tokens=st.integers(0, 10**6),
    logprob=st.none() | st.floats(-1e6, 0),
)
def test_a_rollout_survives_its_line(
    outcome: Outcome, reward: float | None, answer: str | None, tokens: int, logprob: float | None
) -> None:
    rollout = Rollout("0-1", "p", "g", 3, outcome, reward, answer, tokens, logprob, (2.5, 1.0))
    assert read_rollout(rollout_line(0, rollout)) == rollout


@pytest.mark.parametrize("text", ["my notes", "[1, 2", "{", '{"step": 1', '{"type": "wave", "step": 1e400}\n'])
def test_a_file_that_is_no_ledger_is_never_emptied(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    if text == "{":  # may be the start of a line cut short
        assert Ledger(path).paid == 0
        return
    with pytest.raises(RollwiseError, match="^ledger: .* line 1 is not a ledger line"):
        Ledger(path)
    assert path.read_text() == text


def test_numpy_numbers_of_a_users_loop_are_written(tmp_path: Path) -> None:
    step = Step(["a", "b"], Uniform(), 4, rng=np.random.default_rng(0), ledger=Ledger(tmp_path / "l.jsonl"))
    while wave := step.next_wave():
        for rollout in wave.rollouts:
            step.observe(rollout.result(1, reward=np.float32(0.5), tokens=np.int64(3), logprob=np.float64(-1)))
    assert Ledger(tmp_path / "l.jsonl").known(0)["0-0"].reward == 0.5


WAVE = wave_line(0, 0, [Rollout("0-0", "p", "g", 0)], "d")
ROLLOUT = rollout_line(0, Rollout("0-0", "p", "g", 0, Outcome.SUCCESS, 1.0))


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        (WAVE, "step", "0"),
        (WAVE, "step", True),
        (WAVE, "step", 0.0),
        (WAVE, "wave", -1),
        (WAVE, "digest", 7),
        (WAVE, "rollouts", {}),
        (WAVE, "rollouts", [1]),
        (WAVE, "rollouts", [{"id": 1, "prompt_id": "p", "group_id": "p", "belief": [1.0, 1.0]}]),
        (WAVE, "rollouts", [{"id": "1"}]),
        (ROLLOUT, "id", 3),
        (ROLLOUT, "prompt_id", None),
        (ROLLOUT, "outcome", 1),
        (ROLLOUT, "outcome", "sucess"),
        (ROLLOUT, "reward", "1.0"),
        (ROLLOUT, "reward", float("inf")),
        (ROLLOUT, "tokens", 1.5),
        (ROLLOUT, "tokens", -1),
        (ROLLOUT, "logprob", [0]),
        (ROLLOUT, "belief", [1.0]),
        (ROLLOUT, "belief", [0.0, 1.0]),
        (ROLLOUT, "belief", ["1", "1"]),
        ({"type": "step", "step": 0, "rollouts": 3, "metrics": {}}, "metrics", []),
        ({"type": "rewind", "step": 0, "rollouts_lost": 1}, "rollouts_lost", None),
        ({"type": "step", "step": 0}, "type", "stop"),
        ({"type": "step", "step": 0}, "type", []),
    ],
)
def test_a_line_with_a_value_of_another_type_is_refused_at_opening(
    tmp_path: Path, line: dict[str, Any], field: str, value: Any
) -> None:
    path = tmp_path / "l.jsonl"
    text = json.dumps(WAVE) + "\n" + json.dumps(line | {field: value}) + "\n"
    path.write_text(text)
    with pytest.raises(
        RollwiseError, match=r"^ledger: .*l\.jsonl line 2 is not a ledger line \(.*\); give another folder$"
    ):
        Ledger(path)
    assert path.read_text() == text


@pytest.mark.parametrize("line", [WAVE, ROLLOUT])
def test_every_field_of_a_line_is_asked_for(line: dict[str, Any]) -> None:
    assert read_line(json.dumps(line).encode()) == line
    for field in set(line) - {"gradient_norm"}:  # lines of earlier versions have none
        with pytest.raises(ValueError, match=f"{field}|type"):
            read_line(json.dumps({key: line[key] for key in line if key != field}).encode())


def in_another_process(path: Path, code: str) -> str:
    text = f"from rollwise.ledger import Ledger\nfrom rollwise.ledger_lines import *\npath = {str(path)!r}\n{code}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr.strip().rsplit("\n", 1)[-1]


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="files are locked on POSIX systems only")
    path = tmp_path / "l.jsonl"
    ledger = Ledger(path)
    run_step(ledger)
    assert "ledger: " in (said := in_another_process(path, "Ledger(path)"))
    assert said.endswith("l.jsonl is open in another process; let that run end, or give another folder")
    ledger.close()
    assert in_another_process(path, "print(Ledger(path).paid)") == "8\n"


def test_of_two_on_one_file_in_a_process_the_later_writes(tmp_path: Path) -> None:
    first = Ledger(tmp_path / "l.jsonl")
    run_step(first, 0)
    second = Ledger(tmp_path / "." / "l.jsonl")
    run_step(second, 1)
    with pytest.raises(
        RollwiseError, match=r"^ledger: .*l\.jsonl is closed, by close\(\) or by opening it a second time"
    ):
        run_step(first, 1)
    assert second.paid == Ledger(tmp_path / "l.jsonl").paid == 16


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path, tmp_path / "file" / "l.jsonl"):
        with pytest.raises(RollwiseError, match=r"^ledger: .* cannot be opened \(.*\); give a folder with room and"):
            Ledger(path)


def test_a_full_disk_is_one_line_and_leaves_whole_lines(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="file sizes are limited on POSIX systems only")
    path = tmp_path / "l.jsonl"
    run_step(Ledger(path))
    size = path.stat().st_size
    code = f"""
import resource
from rollwise.types import Rollout
ledger = Ledger(path)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 100}, {size + 100}))
ledger.wave(1, 0, [Rollout("1-0", "p" * 1000, "g", 0)], "d")
"""
    assert "RollwiseError: ledger:" in (said := in_another_process(path, code))
    assert "cannot be written (" in said
    assert path.stat().st_size == size
    assert Ledger(path).paid == 8
