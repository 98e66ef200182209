"""Two real processes (gloo): the same decisions everywhere, exactly N rollouts, the same training as one process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.trl.support import distance, same

# plain SGD: Adam would blow rounding on near-zero gradients up to whole learning rates
OFF_POLICY = {
    "optim": "sgd",
    "learning_rate": 0.1,
    "steps_per_generation": 2,
    "num_iterations": 2,
    "gradient_accumulation_steps": 1,
    "max_steps": 4,
}
LOSSES = ["dapo", "grpo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo"]


APART: dict[str, tuple[dict[str, Any], str]] = {
    "waves": ({"waves": [4, 2]}, "waves: 4 on process 0 and 2 on process 1"),
    "rule": ({"allocator": ["adaroll", "uniform"]}, "allocator: 'adaroll' on process 0 and 'uniform' on process 1"),
    "shape": ({"num_generations": [4, 2]}, "num_generations: 4 on process 0 and 2 on process 1"),
    "seed": ({"seed": [7, 8]}, "seed: 7 on process 0 and 8 on process 1"),
    "data": ({"rows": [24, 28]}, "train_dataset: rows: 24 on process 0 and 28 on process 1"),
}
"""Settings per process, and what must be said of them."""


def runs(per_device: int) -> list[dict[str, Any]]:
    """The runs both launches make; the batch is the same in sum."""
    shared = {"per_device_train_batch_size": per_device, "beta": 0.1, "optim": "sgd", "learning_rate": 0.1}
    # two waves of 8: sizes that one and two processes round alike
    plain = [{"name": kind, "kind": kind, "waves": 2, **shared} for kind in ("rollwise", "adverse")]
    uniform = {"allocator": "uniform", "force_waves": True}
    paired = [
        {"name": f"{kind}-{loss}", "kind": kind, "loss_type": loss, **shared, **OFF_POLICY, **extra}
        for loss in LOSSES
        for kind, extra in (("stock", {}), ("rollwise", uniform))
    ]
    return plain + paired


@pytest.fixture(scope="module")
def results(
    launch: Callable[..., list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any], list[dict[str, Any]]]:
    """Folder of the two-process runs, the one-process results, the two-process results."""
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    apart = [
        {"name": name, "kind": "apart", "per_device_train_batch_size": 4, "apart": a} for name, (a, _) in APART.items()
    ]
    moody = {"name": "moody", "kind": "moody", "per_device_train_batch_size": 4}
    return two, launch(one, 1, runs(8))[0], launch(two, 2, [*runs(4), *apart, moody])


@pytest.mark.parametrize("kind", ["rollwise", "adverse"])
def test_two_processes_train_like_one(results: Any, kind: str) -> None:
    _, alone, pair = results
    alone, first, second = alone[kind], pair[0][kind], pair[1][kind]
    assert same(first["parameters"], second["parameters"])
    assert first["counts"] == second["counts"] == alone["counts"]
    assert len(set(first["counts"])) > 1, "the rule never left uniform, so this run shows nothing"
    assert first["advantages"] == pytest.approx(alone["advantages"], abs=1e-6)
    assert max(distance(a, b) for a, b in zip(first["gradients"], alone["gradients"], strict=True)) < 1e-6


@pytest.mark.parametrize("kind", ["rollwise", "adverse"])
def test_every_generated_completion_is_in_the_ledger(results: Any, kind: str) -> None:
    folder, alone, pair = results
    assert pair[0][kind]["calls"] == pair[1][kind]["calls"]
    generated = sum(pair[0][kind]["calls"]) + sum(pair[1][kind]["calls"])
    lines = [json.loads(line) for line in (folder / kind / "rollwise" / "ledger.jsonl").read_text().splitlines()]
    waves = [len(line["rollouts"]) for line in lines if line["type"] == "wave"]
    assert generated == sum(alone[kind]["calls"]) == sum(waves) == 2 * 16
    assert all(count % 2 == 0 for count in waves)
    assert len({line["id"] for line in lines if line["type"] == "rollout"}) == 2 * 16


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_four_recorded_waves_match_stock(results: Any, processes: int, loss: str) -> None:
    _, alone, pair = results
    for result in [alone] if processes == 1 else pair:
        stock, waves = result[f"stock-{loss}"], result[f"rollwise-{loss}"]
        assert waves["calls"] == [4 // processes] * 4
        assert waves["losses"] == pytest.approx(stock["losses"], abs=1e-6)
        assert any(abs(loss) > 1e-4 for loss in stock["losses"])
        pairs = zip(stock["gradients"], waves["gradients"], strict=True)
        assert max(distance(left, right) for left, right in pairs) < 1e-6


@pytest.mark.parametrize("name", APART)
def test_processes_started_apart_are_told_what_differs(results: Any, name: str) -> None:
    folder, _, pair = results
    said = f"{APART[name][1]}; start every process with the same settings"
    assert [result[name]["error"] for result in pair] == [said, said]
    assert not (folder / name / "rollwise").exists()


def test_a_rule_that_decides_differently_is_named(results: Any) -> None:
    for result in results[2]:
        assert result["moody"]["error"].startswith("allocator: one_takes_all decided differently on two processes")
