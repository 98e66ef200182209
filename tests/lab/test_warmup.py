"""The warm start: made once per setting, shared, and stopped where it should."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rollwise.lab import warmup
from rollwise.lab.measure import success_rates
from rollwise.lab.tasks import get_task
from rollwise.lab.warmup import Start, Warmup, evaluation_set, load_model, prepare_start
from rollwise.types import RollwiseError

from .support import WARMUP


def test_a_start_is_read_back_as_it_was_made(start: Start, cache: Path) -> None:
    lines: list[str] = []
    again = prepare_start(WARMUP, cache, report=lines.append)
    assert again.pool.ids == start.pool.ids and again.steps == start.steps
    assert all(torch.equal(again.weights[name], weight) for name, weight in start.weights.items())
    assert 0.08 < start.accuracy < 0.35


def test_a_skewed_pool_is_most_of_it_dead_for_the_warm_model(
    start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmup, "train_supervised", lambda *_: (start.weights, start.steps))
    skewed = prepare_start(replace(WARMUP, pool="skewed", pool_size=200), cache)
    task = get_task("sort")
    rates = success_rates(load_model(task, "tiny", start.weights), task, skewed.pool)
    assert (rates <= 0.02).sum() >= 60
    assert ((rates >= 0.2) & (rates <= 0.8)).sum() >= 20
    assert len(set(skewed.pool.ids)) == 200


def test_the_evaluation_set_is_the_same_every_time_and_apart_from_the_pool(start: Start) -> None:
    first, second = (evaluation_set(get_task("sort"), 100) for _ in range(2))
    assert first.ids == second.ids and not set(first.ids) & set(start.pool.ids)
    assert (np.bincount(first.classes) >= 12).all()


def test_a_target_out_of_reach_says_what_was_reached(cache: Path) -> None:
    settings = Warmup(task="chains", target=0.9, limit=10, batch=16, pool_size=16)
    with pytest.raises(RollwiseError, match=r"target: chains reached accuracy 0\.\d+ in 10 steps, not 0.9"):
        prepare_start(settings, cache, report=lambda line: None)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"target": 1.0}, "target: accuracy 1.0"),
        ({"pool": "skew"}, "pool: no 'skew'; did you mean 'skewed'"),
        ({"pool_size": 0}, "pool_size: 0 problems; give 1 to"),
    ],
)
def test_mistakes_name_the_setting(setting: dict[str, object], message: str) -> None:
    with pytest.raises(RollwiseError, match=message):
        Warmup(**setting)  # type: ignore[arg-type]
