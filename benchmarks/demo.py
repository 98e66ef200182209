"""The demo (`rollwise train` without arguments) over several seeds: what differs between its arms, with intervals.

    python benchmarks/demo.py [--seeds 10] [--out benchmarks/results/demo.json] [-- any flag of rollwise train]

Arms of a seed share model, prompts and budget, so differences are paired. Intervals are 95 % bootstrap over seeds.
Finished seeds in `--runs` are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe


def run_seed(seed: int, folder: Path, flags: list[str]) -> dict[str, Any]:
    """Train both arms of a seed, or read what an earlier call left."""
    result = folder / f"seed-{seed}.json"
    if not result.exists():
        command = [str(Path(sys.executable).parent / "rollwise"), "train", "--json", "--seed", str(seed)]
        command += ["--output", str(folder / f"run-{seed}-{int(time.time())}"), *flags]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        result.write_text(done.stdout)
    return json.loads(result.read_text())


def metrics(run: dict[str, Any], arm: str) -> dict[str, float]:
    """Final accuracies, and means over the steps of what the trainer logged."""
    lines = [json.loads(line) for line in (Path(run["run"]) / arm / "metrics.jsonl").read_text().splitlines()]
    means = {
        name: float(np.mean([line[f"rollwise/{name}"] for line in lines]))
        for name in ("dead_prompt_share", "informative_rollout_share", "unsolved_share")
    }
    after = run["evaluation"][arm]
    return {"greedy": after["greedy"], "sampled": after["sampled"], **means, "seconds": run["seconds"][arm]}


def interval(values: np.ndarray) -> list[float]:
    """95 % bootstrap interval of the mean over seeds."""
    draws = np.random.default_rng(0).choice(values, (10_000, len(values))).mean(axis=1)
    return [round(float(bound), 4) for bound in np.quantile(draws, [0.025, 0.975])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--runs", type=Path, default=Path("runs/demo-seeds"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/demo.json"))
    parser.add_argument("flags", nargs="*", help="after --: flags of rollwise train")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    os.environ["HF_HUB_OFFLINE"] = "1"
    runs = []
    for seed in range(options.seeds):
        runs.append(run_seed(seed, options.runs, options.flags))
        print(f"seed {seed}: {runs[-1]['evaluation']}", flush=True)
    arms = list(runs[0]["evaluation"])
    rows = {arm: [metrics(run, arm) for run in runs] for arm in arms}
    summary: dict[str, Any] = {}
    for name in rows[arms[0]][0]:
        columns = {arm: np.array([row[name] for row in rows[arm]]) for arm in arms}
        summary[name] = {
            arm: {"mean": round(float(c.mean()), 4), "interval": interval(c)} for arm, c in columns.items()
        }
        for arm in arms[1:]:
            difference = columns[arm] - columns[arms[0]]
            summary[name][f"{arm} - {arms[0]}"] = {
                "mean": round(float(difference.mean()), 4),
                "interval": interval(difference),
                "per_seed": [round(float(value), 4) for value in difference],
            }
    before = {name: runs[0]["before"][name] for name in ("greedy", "sampled")}
    report = describe() | {"seeds": options.seeds, "before": before, "summary": summary}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    for name, row in summary.items():
        print(name, {key: (value["mean"], value["interval"]) for key, value in row.items()})


if __name__ == "__main__":
    main()
