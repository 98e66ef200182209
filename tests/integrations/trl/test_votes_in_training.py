"""Training without labels: answers are found, groups vote, and agreement with the leading answer is what trains."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from rollwise.integrations.trl import RollwiseGRPOConfig, RollwiseGRPOTrainer
from rollwise.methods import expand
from rollwise.types import RollwiseError, StepRecord

from .support import brevity, digits, parity, settings, tokenizer


def unlabelled() -> Dataset:
    """Prompts and nothing else."""
    return digits().select_columns("prompt")


class Watched(RollwiseGRPOTrainer):
    """Keeps every step's record, and the table of its completions."""

    def _report(self, record: StepRecord, block: Any) -> None:
        super()._report(record, block)
        self.records = [*getattr(self, "records", []), record]
        tables = self._logs
        table = {"completion": tables["completion"], "advantage": tables["advantages"], **tables["rewards"]}
        self.table = {name: list(values)[-len(record.rollouts) :] for name, values in table.items()}


def trainer(model: str, folder: Path, rewards: Any = None, **changes: Any) -> Watched:
    chosen = expand({"preset": "optpo"}) | {"answers": f"{parity.__module__}:parity", "max_steps": 2, "n_min": 2}
    args = RollwiseGRPOConfig(**settings(folder, **(chosen | changes)))
    return Watched(model, rewards, args, unlabelled(), processing_class=tokenizer())


@pytest.mark.parametrize("allocator", ["optpo", "uniform"])
def test_agreement_with_the_leading_answer_is_the_reward(model: str, tmp_path: Path, allocator: str) -> None:
    own = {"allocator_settings": {"increment": 2, "right": 0.9, "wrong": 0.01}} if allocator == "optpo" else {}
    run = trainer(model, tmp_path, allocator=allocator, **own)
    run.train()
    record = run.records[-1]
    said = [parity(text) or "" for text in run.table["completion"]]
    assert {"", "even", "odd"} == set(said)
    assert [rollout.answer for rollout in record.rollouts] == said
    for slot in range(len(record.prompt_ids)):
        places = np.flatnonzero(record.slots == slot)
        ballot = Counter(said[place] for place in places if said[place])
        leader = ballot.most_common(1)[0][0]
        agrees = [float(said[place] == leader) for place in places]
        assert [run.table["agreement"][place] for place in places] == agrees
        centred = (np.array(agrees) - np.mean(agrees)) / (np.std(agrees, ddof=1) + 1e-4)
        assert [run.table["advantage"][place] for place in places] == pytest.approx(centred.tolist(), abs=1e-6)
    logged = [entry for entry in run.state.log_history if "reward" in entry][-1]
    assert logged["reward"] == pytest.approx(np.mean(run.table["agreement"]))
    assert logged["rewards/agreement/mean"] == logged["reward"]
    spent = [int(step.counts.sum()) for step in run.records]
    assert spent == [16, 16] if allocator == "uniform" else sum(spent) < 32
    ledger = map(json.loads, (tmp_path / "rollwise" / "ledger.jsonl").read_text().splitlines())
    assert [line["answer"] for line in ledger if line["type"] == "rollout"][-len(said) :] == said


def test_reward_functions_look_on_and_train_nothing(model: str, tmp_path: Path) -> None:
    """The same weights with a shaped reward beside the vote as without; its own mean is logged."""
    plain = trainer(model, tmp_path / "plain")
    plain.train()
    watched = trainer(model, tmp_path / "watched", [brevity, constant])
    watched.train()
    for name, weight in plain.model.state_dict().items():
        assert weight.equal(watched.model.state_dict()[name]), name
    logged = [entry for entry in watched.state.log_history if "reward" in entry][-1]
    assert 0 < logged["rewards/brevity/mean"] < 1 and logged["rewards/constant/mean"] == 1
    assert logged["reward"] == pytest.approx(float(np.mean([row.reward for row in watched.records[-1].rollouts])))
    assert "label_agreement" not in watched.records[-1].metrics


def test_a_verifier_that_looks_on_tells_how_good_the_labels_are(model: str, tmp_path: Path) -> None:
    run = trainer(model, tmp_path, [constant], outcome="constant")
    run.train()
    record = run.records[-1]
    assert record.metrics["label_agreement"] == pytest.approx(np.mean([row.reward for row in record.rollouts]))


def constant(completions: list[str], **_: Any) -> list[float]:
    """Says that all are right."""
    return [1.0] * len(completions)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": "last_numbr"}, "answers: no 'last_numbr'; did you mean 'last_number'"),
        ({"labels": "majorty"}, "labels: no 'majorty'; did you mean 'majority'"),
        (
            {"multi_objective_aggregation": "normalize_then_sum"},
            "multi_objective_aggregation: normalize_then_sum is for",
        ),
        ({"labels": "verifier"}, "reward_funcs: none given"),
    ],
)
def test_what_cannot_vote_is_refused(model: str, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RollwiseError, match=message):
        trainer(model, tmp_path, **changes)
