"""Selectors, curators and saving rules in two real processes: the same rows and the same training as in one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rollwise.methods import expand
from tests.integrations.trl.support import distance

PRESETS: dict[str, dict[str, Any]] = {
    "replay": {"curator_settings": {"replay": {"warmup": 0, "share": 1.0}}},
    "dapo": {},
    "codapo": {},
    "cero": {},
    "mopps": {},
    "pods": {"curator_settings": {"pods": {"keep": 3}}, "loss_type": "grpo"},
    "ar3po": {},
    "aero": {},
    "gvm": {"temperature": 1.3},
    "optpo": {
        "answers": "tests.integrations.trl.support:parity",
        "allocator_settings": {"right": 0.9, "wrong": 0.01, "increment": 2},
    },
}


def runs(per_device: int) -> list[dict[str, Any]]:
    shared = {
        "kind": "rollwise",
        "per_device_train_batch_size": per_device,
        "optim": "sgd",
        "learning_rate": 0.1,
        "max_steps": 3,
    }
    return [{"name": name, **shared, **expand({"preset": name}), **extra} for name, extra in PRESETS.items()]


@pytest.fixture(scope="module")
def results(
    launch: Callable[..., list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """Of one process, then of each of two."""
    one = launch(tmp_path_factory.mktemp("levers-one"), 1, runs(8))
    return one + launch(tmp_path_factory.mktemp("levers-two"), 2, runs(4))


@pytest.mark.parametrize("name", PRESETS)
def test_two_processes_train_what_one_does(results: list[dict[str, Any]], name: str) -> None:
    one, first, second = (result[name] for result in results)
    spent = [[entry["rollwise/rollouts_spent"] for entry in result["history"]] for result in (one, first)]
    assert spent[0] == spent[1]
    shares = [[entry.get("rollwise/trained_share") for entry in result["history"]] for result in (one, first)]
    assert shares[0] == pytest.approx(shares[1])
    assert distance(first["parameters"], second["parameters"]) == 0
    assert distance(one["parameters"], first["parameters"]) < 2e-5


def test_mechanisms_act(results: list[dict[str, Any]]) -> None:
    history = {name: results[0][name]["history"] for name in PRESETS}
    assert any(entry["rollwise/replayed_rows"] > 0 for entry in history["replay"])
    assert any(entry["rollwise/idle"] > 0 for entry in history["dapo"])
    assert [entry["rollwise/resampled"] for entry in history["codapo"]] == [0, 1, 0]
    assert history["cero"][-1]["rollwise/cero_round"] == 3
    assert any(entry["rollwise/subsampled_out"] > 0 for entry in history["aero"])
    assert all(entry["rollwise/trained_share"] < 1 for entry in history["pods"])
    assert any(entry["rollwise/max_n"] > entry["rollwise/min_n"] for entry in history["gvm"])
    assert history["optpo"][-1]["rollwise/rollouts_spent"] < 3 * 16
