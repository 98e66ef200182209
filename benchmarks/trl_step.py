"""Seconds of one training step: rollwise with 1, 2, 4 and 8 waves over stock TRL, at equal rollouts, in one run.

    python benchmarks/trl_step.py [--device cpu|cuda] [--steps 8] [--out benchmarks/results/trl_step_cpu.json]

Two sizes: `busy`, where generation and update keep the processor busy, and `tiny`, where fixed costs show. Every arm trains
the same random model on the same prompts with the same N; arms take turns over several rounds, so that a slow minute of the
machine hits all of them. A ratio is the median over rounds of (seconds per step of the arm / of stock in the same round).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import torch
import transformers
from datasets import Dataset
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe

from rollwise.integrations.trl import RollwiseGRPOConfig, RollwiseGRPOTrainer
from rollwise.tasks.models import embedded_model_path

SIZES = {
    "cpu": {
        "tiny": {"hidden": 64, "layers": 2, "prompts": 8, "generations": 8, "tokens": 8},
        "busy": {"hidden": 256, "layers": 5, "prompts": 16, "generations": 8, "tokens": 32},
    },
    "cuda": {
        "tiny": {"hidden": 64, "layers": 2, "prompts": 8, "generations": 8, "tokens": 8},
        "busy": {"hidden": 1024, "layers": 24, "prompts": 64, "generations": 8, "tokens": 256},
    },
}
ARMS = {"stock": None, "uniform": 1, "1 wave": 1, "2 waves": 2, "4 waves": 4, "8 waves": 8}


def half(completions: list[str], **_: Any) -> list[float]:
    """A cheap 0/1 reward near one half: the parity of the number of distinct characters."""
    return [float(len(set(text)) % 2) for text in completions]


def save_model(folder: Path, hidden: int, layers: int) -> str:
    torch.manual_seed(0)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(embedded_model_path())
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=max(2, hidden // 64),
        num_key_value_heads=max(2, hidden // 64),
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        tie_word_embeddings=True,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def seconds_per_step(arm: str, model: str, size: dict[str, int], steps: int, device: str) -> dict[str, float]:
    """Median seconds and tokens per second of one arm's steps, the first left out."""
    rows = size["prompts"] * size["generations"]
    with tempfile.TemporaryDirectory() as folder:
        shape: dict[str, Any] = {
            "output_dir": folder,
            "use_cpu": device == "cpu",
            "bf16": device == "cuda",
            "gradient_checkpointing": False,
            "per_device_train_batch_size": min(rows, 64),
            "gradient_accumulation_steps": rows // min(rows, 64),
            "num_generations": size["generations"],
            "max_completion_length": size["tokens"],
            "generation_kwargs": {"min_new_tokens": size["tokens"]},
            "max_steps": steps,
            "logging_steps": 1,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
            "seed": 0,
        }
        data = Dataset.from_dict({"prompt": [f"{i % 10}+{i % 7}*{i % 3}=" for i in range(size["prompts"] * 4)]})
        if arm == "stock":
            trainer: Any = GRPOTrainer(model, half, GRPOConfig(**shape), data)
        else:
            adaptive = {"allocator": "adaroll", "utility": "min_variance", "waves": ARMS[arm]}
            method = {"allocator": "uniform"} if arm == "uniform" else adaptive
            trainer = RollwiseGRPOTrainer(model, half, RollwiseGRPOConfig(**shape, **method), data)
        stamps: list[float] = []

        class Clock(transformers.TrainerCallback):
            def on_step_end(self, *_: Any, **__: Any) -> None:
                if device == "cuda":
                    torch.cuda.synchronize()
                stamps.append(time.perf_counter())

        trainer.add_callback(Clock())
        trainer.train()
    seconds = statistics.median(b - a for a, b in zip(stamps, stamps[1:], strict=False))
    return {"seconds": seconds, "tokens_per_second": rows * size["tokens"] / seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    for name, size in SIZES[options.device].items():
        with tempfile.TemporaryDirectory() as folder:
            model = save_model(Path(folder), size["hidden"], size["layers"])
            rounds = [
                {arm: seconds_per_step(arm, model, size, options.steps, options.device) for arm in ARMS}
                for _ in range(options.rounds)
            ]
        results[name] = {"size": size} | {
            arm: {
                "seconds": round(statistics.median(r[arm]["seconds"] for r in rounds), 4),
                "tokens_per_second": round(statistics.median(r[arm]["tokens_per_second"] for r in rounds)),
                "ratio": round(statistics.median(r[arm]["seconds"] / r["stock"]["seconds"] for r in rounds), 3),
                "ratio_range": [
                    round(pick(r[arm]["seconds"] / r["stock"]["seconds"] for r in rounds), 3) for pick in (min, max)
                ],
            }
            for arm in ARMS
        }
        for arm, row in results[name].items():
            if arm != "size":
                print(
                    f"{name:6} {arm:9} {row['seconds']:8.3f} s/step  {row['tokens_per_second']:8} tok/s  x{row['ratio']}"
                )
    report = describe(torch.cuda.get_device_name() if options.device == "cuda" else None) | {
        "rounds": options.rounds,
        "steps": options.steps,
        "results": results,
    }
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
