"""Training runs in a process of their own (or in several, under torchrun); results are saved per process.

usage: worker.py FOLDER MODEL RUNS, where RUNS is a JSON list of {"name", "kind", **config changes}
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rollwise.integrations.trl import RollwiseGRPOTrainer
from rollwise.types import IntArray, RollwiseError, StepView
from tests.integrations.trl.presets import play
from tests.integrations.trl.support import RecordedRollwise, RecordedStock, digits, rollwise, stock, train

RANK = int(os.environ.get("RANK", "0"))


class OneTakesAll:
    """Adverse rule: after the floor, everything to the last prompt."""

    name, saves = "one_takes_all", False

    def next_wave(self, view: StepView, rng: Any) -> IntArray:
        counts = (view.n_min - view.paid).clip(min=0)
        counts[-1] += view.budget_left - counts.sum()
        return counts

    def metrics(self) -> dict[str, float]:
        return {}


class Moody(OneTakesAll):
    """A rule that breaks its contract: each process favours another prompt."""

    def next_wave(self, view: StepView, rng: Any) -> IntArray:
        return np.roll(super().next_wave(view, rng), RANK)


def run_apart(folder: Path, model: str, kind: str, changes: dict[str, Any]) -> dict[str, Any]:
    """What stops processes that were not started alike, or whose rule does not decide alike."""
    rule = {"allocator": Moody()} if kind == "moody" else {}
    apart = {name: values[RANK] for name, values in changes.pop("apart", {}).items()}
    rows = apart.pop("rows", 24)
    try:
        train(RecordedRollwise, rollwise(folder, **changes | apart), model, train_dataset=digits(rows), **rule)
    except RollwiseError as error:
        return {"error": str(error)}
    return {"error": None}


def run(folder: Path, model: str, kind: str, changes: dict[str, Any]) -> dict[str, Any]:
    if kind in ("apart", "moody"):
        return run_apart(folder, model, kind, changes)
    resume = changes.pop("resume", None)
    if resume:
        resume = str(folder / resume)
    if kind == "preset":
        return play(folder, model, changes, resume)
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
    # accelerate collects garbage at every start of a training; what importing made would take longer than a tiny run
    gc.collect()
    gc.freeze()
    results = {}
    for changes in runs:
        name, kind = changes.pop("name"), changes.pop("kind")
        results[name] = run(folder / name, model, kind, changes)
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    torch.save(results, folder / f"results_{rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
