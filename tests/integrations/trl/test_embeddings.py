"""VIP through the trainer: prompts are foretold from those that read alike, whatever makes vectors of their texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from rollwise.integrations.trl import RollwiseGRPOConfig, RollwiseGRPOTrainer
from rollwise.integrations.trl.embeddings import text_of
from rollwise.methods import expand
from rollwise.types import RollwiseError, StepRecord

from .support import settings, tokenizer

pytest.importorskip("sklearn", reason="embeddings of texts need rollwise[gp]")

TOPICS = [f"add {k} and {k}=" if k % 2 else f"name river {k}=" for k in range(16)]
"""Sums, which the reward below always likes, and rivers, of which it likes about half."""


def sums_succeed(prompts: list[str], completions: list[str], **_: Any) -> list[float]:
    return [float("add" in asked or sum(map(ord, said)) % 2) for asked, said in zip(prompts, completions, strict=True)]


class Watched(RollwiseGRPOTrainer):
    """Keeps the beliefs and the record of every step."""

    def _open_step(self, ids: Any) -> Any:
        step = super()._open_step(ids)
        self.openings = [*getattr(self, "openings", []), step.view]
        return step

    def _report(self, record: StepRecord, block: Any) -> None:
        self.records = [*getattr(self, "records", []), record]
        super()._report(record, block)


def trainer(model: str, folder: Path, data: Any = None, preset: str = "vip", **changes: Any) -> Watched:
    chosen = expand({"preset": preset}) | {"max_steps": 3, "learning_rate": 1e-6, "prior_settings": {"noise": 0.01}}
    args = RollwiseGRPOConfig(**settings(folder, **(chosen | changes)))
    rows = Dataset.from_dict({"prompt": TOPICS}) if data is None else data
    return Watched(model, sums_succeed, args, rows, processing_class=tokenizer())


def test_prompts_never_seen_get_rollouts_by_those_that_read_alike(model: str, tmp_path: Path) -> None:
    run = trainer(model, tmp_path)
    run.train()
    few, many = [], []
    for view, record in zip(run.openings[1:], run.records[1:], strict=True):
        means = view.prior_a / (view.prior_a + view.prior_b)
        sums = np.array([int(key) % 2 == 1 for key in view.prompt_ids])
        assert sums.any() and not sums.all() and means[sums].min() > means[~sums].max()
        few += record.counts[sums].tolist()
        many += record.counts[~sums].tolist()
    assert np.mean(few) < np.mean(many) - 0.5
    seen = [key for view in run.openings for key in view.prompt_ids]
    assert len(set(seen)) == len(seen) == 12, "no prompt came twice"
    assert {int(record.counts.sum()) for record in run.records} == {16}


def halves(texts: list[str]) -> np.ndarray:
    """Vectors by a function of one's own."""
    return np.array([[float("add" in text), len(text)] for text in texts])


def short(texts: list[str]) -> list[list[float]]:
    return [[1.0]]


def empty(texts: list[str]) -> np.ndarray:
    return np.zeros((len(texts), 0))


def alike(texts: list[str]) -> np.ndarray:
    return np.full((len(texts), 3), 0.7)


def broken(texts: list[str]) -> None:
    raise KeyError("no encoder")


def test_vectors_may_come_from_a_function_of_ones_own(model: str, tmp_path: Path) -> None:
    run = trainer(model, tmp_path, prior_settings={"embedding": f"{halves.__module__}:halves"})
    assert {key: tuple(vector) for key, vector in run._prior.embeddings.items()} == {  # type: ignore[attr-defined]
        str(row): tuple(vector) for row, vector in enumerate(halves(TOPICS))
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"prior": "1,1", "prior_settings": None},
            "prior: 1,1 is one belief for all prompts, from which vip allocates",
        ),
        ({"prior_settings": {"owns": 1}}, "prior_settings.owns: gaussian_process has no such setting"),
        ({"prior_settings": {"embedding": 3}}, "prior_settings.embedding: 3 is no address; give module:function"),
        ({"prior_settings": {"embedding": f"{__name__}:empty"}}, "empty gave vectors without numbers"),
        ({"prior_settings": {"embedding": f"{__name__}:alike"}}, "alike gave the same vector for all 16 texts"),
        ({"prior_settings": {"embedding": f"{__name__}:short"}}, r"short gave an array \(1, 1\) for 16 texts"),
        ({"prior_settings": {"embedding": f"{__name__}:broken"}}, "broken raised KeyError: 'no encoder'"),
        (
            {"prior_settings": {"embedding": f"{__name__}:absent"}},
            "prior_settings.embedding: .* has no function 'absent'",
        ),
    ],
)
def test_what_cannot_foretell_is_refused(model: str, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RollwiseError, match=message):
        trainer(model, tmp_path, **changes)


def test_a_stream_cannot_be_read_beforehand(model: str, tmp_path: Path) -> None:
    rows = Dataset.from_dict({"prompt": TOPICS, "id": [str(k) for k in range(16)]}).to_iterable_dataset()
    with pytest.raises(RollwiseError, match=r"which a stream has not; use carried \(method vip_beta\)"):
        trainer(model, tmp_path, rows, prompt_id_column="id")


def test_the_words_of_a_conversation_are_those_of_all_its_messages() -> None:
    assert text_of([{"role": "system", "content": "Add."}, {"role": "user", "content": "1+1"}]) == "Add.\n1+1"
    assert text_of("1+1") == "1+1"
