"""A run folder as `rollwise train` leaves it, with known numbers, made without training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import yaml

from rollwise.allocators import get_allocator
from rollwise.cli.config import RunConfig
from rollwise.ledger import Ledger
from rollwise.step import Step

STEPS, PROMPTS, GROUP = 30, 4, 8


def write_finished_run(run: Path) -> Path:
    """Two arms over prompts whose success rates rise slowly; real steps, drawn outcomes."""
    config = RunConfig.model_validate(
        {
            "name": "demo",
            "data": {"source": "chains"},
            "method": {"allocator": "adaroll"},
            "compare_uniform": True,
            "prompts_per_step": PROMPTS,
            "rollouts_per_prompt": GROUP,
            "steps": STEPS,
        }
    )
    arms = {}
    for arm in config.planned_arms():
        spent = simulate_arm(run / arm.name, arm.allocator)
        after = {"prompts": 200.0, "greedy": 0.6, "sampled": 0.5, "unknown": 0.0}
        arms[arm.name] = {"rollouts_spent": spent, "seconds": 12.5, "after": after}
    arms["uniform"]["before"] = {"prompts": 200.0, "greedy": 0.4, "sampled": 0.3, "unknown": 0.0}
    record = {
        "status": "complete",
        "started": "2026-01-01T12:00:00+00:00",
        "versions": {"trl": "1.16.0"},
        "arms": arms,
    }
    (run / "run.json").write_text(json.dumps(record))
    (run / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    return run


def simulate_arm(folder: Path, allocator: str) -> int:
    """Write one arm's ledger and metrics; returns the rollouts spent."""
    rng = np.random.default_rng(0)
    ledger = Ledger(folder / "rollwise" / "ledger.jsonl")
    spent = 0
    with (folder / "metrics.jsonl").open("w") as metrics:
        for index in range(STEPS):
            rates = dict(zip("abcdefgh", rng.beta(0.7 + index / 40, 0.9, size=8), strict=True))
            ids = [f"{index}{name}" for name in rng.choice(list(rates), PROMPTS, replace=False)]
            rule = get_allocator(allocator, utility="min_variance")
            step = Step(ids, rule, PROMPTS * GROUP, rng=rng, index=index, waves=4, ledger=ledger)
            while wave := step.next_wave():
                for rollout in wave.rollouts:
                    step.observe(rollout.result(rng.random() < rates[rollout.prompt_id[-1]]))
            record = step.close()
            spent += int(record.counts.sum())
            row = {f"rollwise/{name}": value for name, value in record.metrics.items()}
            print(
                json.dumps({"step": index + 1, "seconds": index, "rollwise/rollouts_spent": spent, **row}),
                file=metrics,
            )
    ledger.close()
    return spent
