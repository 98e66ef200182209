"""Votes instead of a verifier: counted for the rule, and turned into labels when the step closes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from rollwise.allocators import Uniform
from rollwise.ledger_lines import read_line, read_rollout, rollout_line
from rollwise.step import Step
from rollwise.types import Outcome, Rollout, RollwiseError
from rollwise.votes import agreement, label_by_majority, leading_votes


def voted(answers: list[str | None], group: str = "g") -> list[Rollout]:
    return [Rollout(f"{group}{k}", group, group, 0, answer=answer) for k, answer in enumerate(answers)]


def new_step(**settings: object) -> Step:
    return Step(["a", "b"], Uniform(), 8, rng=np.random.default_rng(0), waves=1, **settings)  # type: ignore[arg-type]


def test_leader_and_second_are_counted() -> None:
    ballots = [Counter("xyxzxy"), Counter("zyx"), Counter("yxx"), Counter("x"), Counter()]
    assert [leading_votes(ballot) for ballot in ballots] == [(3, 2), (1, 1), (2, 1), (1, 0), (0, 0)]


def test_the_majority_becomes_the_label_and_the_first_of_equals_leads() -> None:
    outcomes = [row.outcome.value for row in label_by_majority(voted(["4", "5", "5", "4", "", None]))]
    assert outcomes == ["success", "failure", "failure", "success", "failure", "unknown"]
    rewards = [row.reward for row in label_by_majority(voted(["4", "5", "5"]))]
    assert rewards == [0.0, 1.0, 1.0]


def test_a_group_without_any_answer_has_no_label() -> None:
    rows = label_by_majority(voted(["", ""], "a") + voted(["7"], "b"))
    assert [row.reward for row in rows] == [None, None, 1.0]


def test_agreement_counts_what_both_know() -> None:
    graded = [row.result(outcome) for row, outcome in zip(voted(["1"] * 4), [1, 1, 0, None], strict=True)]
    labelled = [row.result(1) for row in voted(["1"] * 4)]
    assert agreement(labelled, graded) == pytest.approx(2 / 3)
    assert np.isnan(agreement(labelled[3:], graded[3:]))


def test_a_step_shows_votes_and_trains_on_the_majority() -> None:
    step = new_step(labels="majority")
    wave = step.next_wave()
    assert wave is not None and step.view.votes is None
    empty = step.view.digest()
    answers = {"a": ["1", "1", "2", "1"], "b": ["3", "", "4", "4"]}
    for name, given in answers.items():
        rows = [rollout for rollout in wave.rollouts if rollout.prompt_id == name]
        step.observe(*(row.result(None, answer=answer) for row, answer in zip(rows, given, strict=True)))
    votes = step.view.votes
    assert votes is not None and votes.tolist() == [[3, 1], [2, 1]]
    assert step.view.digest() != empty
    record = step.close()
    assert record.successes.tolist() == [3, 2] and record.failures.tolist() == [1, 2]
    assert record.unknown.tolist() == [0, 0]
    a = [advantage for row, advantage in zip(record.rollouts, record.advantages, strict=True) if row.prompt_id == "a"]
    assert a[2] < 0 < a[0] and "label_agreement" not in record.metrics


def test_a_verifier_that_looks_on_is_compared_with_the_labels() -> None:
    step = new_step(labels="majority")
    wave = step.next_wave()
    assert wave is not None
    step.observe(*(row.result(row.prompt_id == "a", answer="1") for row in wave.rollouts))
    assert step.close().metrics["label_agreement"] == 0.5


def test_gradient_norms_are_averaged_over_those_that_report_one() -> None:
    step = new_step()
    wave = step.next_wave()
    assert wave is not None and step.view.gradient_norms is None
    norms = iter([2.0, 4.0, None, None])
    rows = [row for row in wave.rollouts if row.prompt_id == "a"]
    step.observe(*(row.result(1, gradient_norm=norm) for row, norm in zip(rows, norms, strict=True)))
    found = step.view.gradient_norms
    assert found is not None and found.tolist() == [3.0, 0.0]
    assert step.close().rollouts[0].gradient_norm == 2.0


def test_ledger_lines_keep_the_norm_and_older_lines_are_read() -> None:
    rollout = Rollout("0-1", "p", "g", 0, Outcome.SUCCESS, 1.0, "4", gradient_norm=0.5)
    line = rollout_line(0, rollout)
    assert read_rollout(line) == rollout
    del line["gradient_norm"]
    assert read_rollout(read_line(json.dumps(line).encode())) == replace(rollout, gradient_norm=None)


def test_an_unknown_source_of_labels_is_refused() -> None:
    with pytest.raises(RollwiseError, match="did you mean 'majority'"):
        new_step(labels="majorty")
