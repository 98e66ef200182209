"""Training runs in a process of their own (or in several, under torchrun); results are saved per process.

usage: worker.py FOLDER MODEL RUNS, where RUNS is a JSON list of {"name", "kind", **config changes}
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from rollwise.integrations.trl import RollwiseGRPOTrainer
from rollwise.types import IntArray, StepView
from tests.integrations.trl.support import RecordedRollwise, RecordedStock, rollwise, stock, train


class OneTakesAll:
    """Adverse rule: after the floor, everything to the last prompt."""

    name, saves = "one_takes_all", False

    def next_wave(self, view: StepView, rng: Any) -> IntArray:
        counts = (view.n_min - view.paid).clip(min=0)
        counts[-1] += view.budget_left - counts.sum()
        return counts

    def metrics(self) -> dict[str, float]:
        return {}


def run(folder: Path, model: str, kind: str, changes: dict[str, Any]) -> dict[str, Any]:
    resume = changes.pop("resume", None)
    if resume:
        resume = str(folder / resume)
    if kind == "stock":
        result = train(RecordedStock, stock(folder, **changes), model, resume=resume)
    elif kind == "generated":
        result = train(RollwiseGRPOTrainer, rollwise(folder, **changes), model, resume=resume)
    else:
        rule = {"allocator": OneTakesAll()} if kind == "adverse" else {}
        result = train(RecordedRollwise, rollwise(folder, **changes), model, resume=resume, **rule)
        result["calls"] = result["trainer"].calls
    trainer = result.pop("trainer")
    if kind != "stock" and trainer.last_record is not None:
        result["counts"] = trainer.last_record.counts.tolist()
        result["advantages"] = trainer.last_record.advantages.tolist()
    return result


def main(folder: Path, model: str, runs: list[dict[str, Any]]) -> None:
    results = {}
    for changes in runs:
        name, kind = changes.pop("name"), changes.pop("kind")
        results[name] = run(folder / name, model, kind, changes)
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    torch.save(results, folder / f"results_{rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
