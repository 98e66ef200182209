"""The ledger: everything paid for, nothing lost by a kill, nothing accepted that is no ledger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.allocators import Uniform
from rollwise.ledger import Ledger, read_rollout, rollout_line
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
