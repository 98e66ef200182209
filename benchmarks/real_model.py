"""A real instruct model, SmolLM2-135M, under uniform and adaptive allocation on sums it partly solves.

    python benchmarks/real_model.py [--steps 60] [--seeds 1] [--out benchmarks/results/real_model.json]

Both arms start from the same model and spend the same rollouts; they run side by side, one thread each. Reported per
arm: reward against rollouts, the shares of dead prompts and informative rollouts, accuracy before and after, seconds of
processor time per phase, which other work on the machine does not stretch. Finished arms in `--runs` are not run again. On
two quiet cores 60 steps of 32 rollouts take about half an hour.
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

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe

ARMS = ("uniform", "adaroll")
SHARES = ("dead_prompt_share", "informative_rollout_share", "unsolved_share")
SUM = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1, "allow_negation": False}


def settings(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """The configuration of a run, but its output."""
    data = {
        "source": "reasoning_gym/chain_sum",
        "options": SUM,
        "chat": True,
        "system_prompt": "Answer with the number only.",
        "prompt_template": "{prompt}",
    }
    return {
        "name": f"real-model-{seed}",
        "model": str(options.model),
        "data": data | {"limit": 512, "seed": seed},
        "eval_data": data | {"split": "test", "limit": options.evaluate, "seed": 0},
        "rewards": ["numeric"],
        "arms": [
            {"name": "uniform", "allocator": "uniform"},
            {"name": "adaroll", "allocator": "adaroll", "utility": "min_variance", "waves": 2},
        ],
        "prompts_per_step": 4,
        "rollouts_per_prompt": 8,
        "steps": options.steps,
        "learning_rate": options.learning_rate,
        "max_completion_length": 16,
        "seed": seed,
        "lora": {"r": 16, "lora_alpha": 32, "target_modules": "all-linear"} if options.lora else None,
        "evaluation": {"samples": 2, "batch": 64},
        "trainer": {"per_device_train_batch_size": 16, "gradient_checkpointing": False},
    }


def train_arm(folder: Path, name: str) -> None:
    """Train one arm of the run in `folder` in this process, its phases timed; writes `<arm>.json`."""
    import torch

    torch.set_num_threads(1)
    from transformers import TrainerCallback

    from rollwise.cli.config import RunConfig
    from rollwise.cli.evaluation import evaluate
    from rollwise.cli.preflight import load_inputs
    from rollwise.cli.trainer import make_trainer

    config = RunConfig.model_validate(json.loads((folder / "config.json").read_text()))
    arm = next(arm for arm in config.planned_arms() if arm.name == name)
    inputs = load_inputs(config)
    trainer = make_trainer(config, arm, inputs, folder)
    lines: list[dict[str, Any]] = []

    class Keep(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if logs and "reward" in logs:
                lines.append({"step": state.global_step, "seconds": time.monotonic() - began, **logs})

    trainer.add_callback(Keep())
    phases = time_phases(trainer)
    before = evaluate(trainer, inputs, config)
    for phase in phases:
        phases[phase] = 0.0
    began, worked = time.monotonic(), time.process_time()
    trainer.train()
    elapsed, total = time.monotonic() - began, time.process_time() - worked
    inner = phases["generation"] + phases["verification"]
    shares = {name: mean(lines, f"rollwise/{name}") for name in SHARES}
    result = {
        "before": before,
        "after": evaluate(trainer, inputs, config),
        "rollouts_spent": trainer.rollouts_spent,
        "seconds": round(elapsed, 1),
        "processor_seconds": round(total, 1),
        "processor_seconds_per_phase": {
            **{phase: round(seconds, 1) for phase, seconds in phases.items() if phase != "step"},
            "allocation_and_scoring": round(max(0.0, phases["step"] - inner), 1),
            "update": round(total - phases["step"], 1),
        },
        "shares": shares,
        "curve": [
            {"rollouts": config.budget * line["step"], "reward": round(float(line["reward"]), 4)} for line in lines
        ],
    }
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1, default=float) + "\n")


def time_phases(trainer: Any) -> dict[str, float]:
    """Seconds of processor time in generation, in the rewards, and in all of making a block of rollouts."""
    phases = {"generation": 0.0, "verification": 0.0, "step": 0.0}
    watched = {
        "generation": "_generate",
        "verification": "_calculate_rewards",
        "step": "_generate_and_score_completions",
    }

    def watch(phase: str, method: str) -> None:
        inner = getattr(trainer, method)

        def timed(*arguments: Any, **named: Any) -> Any:
            start = time.process_time()
            try:
                return inner(*arguments, **named)
            finally:
                phases[phase] += time.process_time() - start

        setattr(trainer, method, timed)

    for phase, method in watched.items():
        watch(phase, method)
    return phases


def mean(lines: list[dict[str, Any]], key: str) -> float | None:
    values = [float(line[key]) for line in lines if key in line]
    return round(sum(values) / len(values), 4) if values else None


def run_seed(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Both arms of a seed, side by side; finished ones are read."""
    folder = options.runs / f"seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    stated = json.dumps(settings(options, seed), indent=1)
    kept = folder / "config.json"
    if kept.exists() and kept.read_text() != stated:
        raise SystemExit(f"{folder} holds a run with other settings; give another --runs")
    kept.write_text(stated)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "false",
    }
    running = {}
    for name in ARMS:
        if not (folder / f"{name}.json").exists():
            command = [sys.executable, __file__, "--child", str(folder), name]
            with (folder / f"{name}.log").open("w") as log:
                running[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    for name, process in running.items():
        if process.wait():
            raise SystemExit(f"arm {name} failed: {folder / name}.log")
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in ARMS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", type=Path, default=Path("build/smollm2/model"), help="a saved SmolLM2; made if absent"
    )
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--evaluate", type=int, default=128, help="held-out problems")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--full", dest="lora", action="store_false", help="train all parameters, not an adapter")
    parser.add_argument("--runs", type=Path, default=Path("runs/real-model"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/real_model.json"))
    parser.add_argument("--child", nargs=2, metavar=("FOLDER", "ARM"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        train_arm(Path(options.child[0]), options.child[1])
        return
    if not (options.model / "config.json").exists():
        from rollwise.tasks.models import materialise

        fetch = [sys.executable, "scripts/fetch_smollm2.py", str(options.model.parent)]
        file = subprocess.run(fetch, capture_output=True, text=True, check=True).stdout.strip()
        materialise(file, options.model, dtype="float32")
    runs = [run_seed(options, seed) for seed in range(options.seeds)]
    made = {
        **describe(),
        "what": "SmolLM2-135M-Instruct, sums of two digits, 4 prompts x 8 rollouts a step, uniform against adaroll",
        "can_show": "that every part works on a real model, what a step costs and where, and how the shares move",
        "cannot_show": "which rule trains better: one model, an easy task, one or few seeds",
        "settings": settings(options, 0),
        "seeds": runs,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(made, indent=1) + "\n")
    for name in ARMS:
        arms = [run[name] for run in runs]
        for arm in arms:
            print(name, arm["before"], arm["after"], arm["shares"], arm["processor_seconds_per_phase"], sep="  ")


if __name__ == "__main__":
    main()
