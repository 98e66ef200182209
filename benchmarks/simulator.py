"""The simulator's committed results: tables of the published findings re-made, utilities reached, beliefs, flaws.

    python benchmarks/simulator.py [--part NAME ...] [--scale 1.0] [--out benchmarks/results/simulator.json]

Parts: tradeoff, batches, waves, utilities, pools, learning, flaws, replay, allocation. `--scale` multiplies the number of
steps. Arms that `--runs` holds are not run again: give another folder after changing a rule.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe

from rollwise.cli.analyze import run_allocation, run_difficulty
from rollwise.simulate.imperfections import Imperfections
from rollwise.simulate.leaderboard import difference, estimate, utilities_table
from rollwise.simulate.methods import parse_methods
from rollwise.simulate.recorded import read_log
from rollwise.simulate.replay import score_log
from rollwise.simulate.runner import Setting, run
from rollwise.utilities import UTILITIES

SHARES = ("dead_prompt_share", "informative_rollout_share", "unsolved_share")
NOTES: dict[str, Any] = {}
OPTIONS = argparse.Namespace()


def arms(setting: Setting, methods: Sequence[str], seeds: int = 2) -> dict[str, list[dict[str, Any]]]:
    """Rows by method, kept in the run folder; without ledgers, since the account is checked by the tests."""
    steps = max(2, round(setting.steps * OPTIONS.scale))
    scaled = Setting(**{**vars(setting), "steps": steps})
    rows = run(scaled, parse_methods(methods), range(seeds), output=OPTIONS.runs, ledgers=False, progress=say)
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["method"], []).append(row)
    return found


def say(done: int, total: int, row: dict[str, Any]) -> None:
    print(f"  {row['setting']['pool']} {row['setting']['prompts']} {row['method']} {row['seconds']:.0f} s", flush=True)


def shares(rows: Sequence[dict[str, Any]], names: Sequence[str] = SHARES) -> dict[str, list[float]]:
    """[mean, standard error] of each metric."""
    return {name: [round(value, 4) for value in asdict(estimate(rows, name)).values()] for name in names}


def tradeoff() -> dict[str, Any]:
    """systems.md 1.7, finding 3: B=4, N=32, one rollout at a time."""
    methods = ["uniform", *(f"{name}@sequential=true" for name in UTILITIES)]
    return {
        pool: {label: shares(rows) for label, rows in arms(Setting(pool, 4, 32, steps=3000, n_min=0), methods).items()}
        for pool in ("beta:1,1", "hard", "easy")
    }


def batches() -> dict[str, Any]:
    """Finding 4: the non-mixed-first rule on larger batches, one rollout at a time."""
    rule = "min_squared_advantage@sequential=true@advantage_form=normalised"
    sizes = {4: 2000, 8: 1000, 16: 500, 64: 120, 256: 40}
    return {
        str(size): shares(arms(Setting(prompts=size, budget=8 * size, steps=steps, n_min=0), [rule])[rule])
        for size, steps in sizes.items()
    }


def waves() -> dict[str, Any]:
    """Finding 5: the budget in few waves, by the rule of that table and by adaroll, which plans to the end of the step."""
    rules = {
        "index_rule": "index_rule:IndexRule",
        "adaroll": "min_squared_advantage@advantage_form=normalised",
    }
    found: dict[str, Any] = {}
    for pool, size, steps in (("beta:1,1", 4, 2000), ("beta:1,1", 64, 150), ("hard", 64, 150)):
        setting = Setting(pool, size, 8 * size, steps=steps, n_min=0)
        uniform = arms(setting, ["uniform"])["uniform"]
        for name, rule in rules.items():
            one = f"@waves={setting.budget}" if name == "index_rule" else "@sequential=true"
            row = {str(w): f"{rule}@waves={w}" for w in (2, 4, 8)} | {"sequential": rule + one}
            rows = arms(setting, list(row.values()))
            found[f"{pool} B={size} {name}"] = {
                "1": shares(uniform),
                **{waves: shares(rows[label]) for waves, label in row.items()},
            }
    return found


def utilities() -> dict[str, Any]:
    """What each rule reaches of every utility, beside optimum and bound; four waves."""
    found = {}
    for pool in ("beta:1,1", "hard", "easy", "rlvr"):
        for size, steps in ((4, 300), (32, 60)):
            rows = arms(Setting(pool, size, 8 * size, steps=steps, n_min=0), ["uniform", *UTILITIES])
            found[f"{pool} B={size}"] = utilities_table(rows)
    return found


def pools() -> dict[str, Any]:
    """Shares on recorded pools and the prior's part in them; B=32, G=8, four waves."""
    methods = [
        "uniform",
        "sum_variance",
        "sum_variance@prior=empirical",
        "min_variance",
        "min_variance@prior=empirical",
    ]
    names = (*SHARES, "max_n", "ideal_informative", "rollouts_trained_on", "sum_variance")
    return {
        pool: {label: shares(rows, names) for label, rows in arms(Setting(pool, 32, 256, steps=100), methods).items()}
        for pool in ("rlvr", "rlvr#40", "math_cot8", "beta:1,1", "beta:0.3,1.5")
    }


def learning() -> dict[str, Any]:
    """Rates that move by the gradient received: final and mean rate at equal rollouts, paired over ten seeds."""
    methods = ["uniform", *UTILITIES, "min_variance@weighting=per_prompt", "sum_variance@prior=empirical"]
    found: dict[str, Any] = {}
    for pool, transfer in (("beta:1,1", 0.0), ("rlvr", 0.0), ("rlvr", 1.0)):
        setting = Setting(pool, 16, 128, steps=96, population=128, drift=0.3, transfer=transfer)
        rows = arms(setting, methods, seeds=10)
        found[f"{pool} transfer={transfer:g}"] = {
            label: {
                "final_rate": shares(own, ("final_rate", "curve_rate", "dead_prompt_share")),
                "minus_uniform": {
                    name: asdict(difference(own, rows["uniform"], name)) for name in ("final_rate", "curve_rate")
                },
            }
            for label, own in rows.items()
        }
    return found


def flaws() -> dict[str, Any]:
    """The same comparison with one thing wrong at a time; B=16, G=8, four waves, Beta(1,1)."""
    cases = {
        "none": {},
        "unknown 0.2": {"unknown": 0.2},
        "false_negative 0.1": {"false_negative": 0.1},
        "false_positive 0.1": {"false_positive": 0.1},
        "lost 0.1": {"lost": 0.1},
        "stragglers, all waited for": {"delay": 0.5, "straggler": 0.05},
        "stragglers, patience 2": {"delay": 0.5, "straggler": 0.05, "patience": 2.0},
        "stragglers, patience and deadline 2": {"delay": 0.5, "straggler": 0.05, "patience": 2.0, "deadline": 2.0},
    }
    names = (*SHARES, "unknown_share", "lost", "wrong_verdict_share", "ideal_informative", "clock", "late")
    return {
        case: {
            label: shares(rows, names)
            for label, rows in arms(
                Setting(prompts=16, budget=128, steps=150, imperfections=Imperfections(**switches)),
                ["uniform", "min_squared_advantage", "min_variance"],
            ).items()
        }
        for case, switches in cases.items()
    }


def replay() -> dict[str, Any]:
    """One-step-ahead prediction on the shipped GRPO log, and allocation while rates move as they did there."""
    methods = [
        "uniform",
        *(
            f"{name}@prior={prior}"
            for name in ("sum_variance", "min_squared_advantage")
            for prior in ("1/1", "empirical", "carried")
        ),
    ]
    found: dict[str, Any] = {"prediction": [asdict(score) for score in score_log(read_log("rlvr"))]}
    allocation = {}
    for label in methods:
        try:
            rows = arms(Setting("rlvr", 32, 256, steps=180, replay=True), [label])[label]
        except ValueError as error:
            allocation[label] = {"refused": str(error)}
            continue
        allocation[label] = shares(rows, (*SHARES, "ideal_informative", "sum_variance", "max_n"))
    return found | {"allocation": allocation}


def allocation() -> dict[str, Any]:
    """Difficulty of the pools, and the published statements on who gets rollouts, B=4, N=32, one at a time."""
    steps = max(2, round(250 * OPTIONS.scale))
    checked = run_allocation(["hard", "easy", "rlvr"], steps=steps)
    return {"difficulty": run_difficulty(["beta:1,1", "hard", "easy", "rlvr", "math_cot8"]), "allocation": checked}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    part.__name__: part for part in (tradeoff, batches, waves, utilities, pools, learning, flaws, replay, allocation)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", action="append", choices=list(PARTS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=Path, default=Path("runs/simulator"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/simulator.json"))
    parser.parse_args(namespace=OPTIONS)
    report = json.loads(OPTIONS.out.read_text()) if OPTIONS.out.exists() else {}
    for name in OPTIONS.part or PARTS:
        started = time.perf_counter()
        print(name, flush=True)
        found = PARTS[name]()
        report[name] = {
            "made": describe() | {"scale": OPTIONS.scale, "seconds": round(time.perf_counter() - started)},
            "about": (PARTS[name].__doc__ or "").strip(),
            "results": found,
        }
        OPTIONS.out.parent.mkdir(parents=True, exist_ok=True)
        OPTIONS.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
