"""Training without labels through TRL: OptPO's sequential vote against majority voting over a fixed number of rollouts.

    python benchmarks/optpo_labels.py [--prompts 256] [--passes 4] [--seeds 3] [--out benchmarks/results/optpo_labels.json]

The embedded model, held-out chains, and a data set whose only column is the prompt; answers are known to this script alone.
First every rule labels the same prompts with the same model (learning rate 0), then each trains on its own labels. Shown
are rollouts, the share of labels that were right, and accuracy before and after (of the prompts trained on, and of as
many others).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import numpy as np
import torch
from transformers import TrainerCallback

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe

from rollwise.integrations.trl import RollwiseGRPOConfig, RollwiseGRPOTrainer
from rollwise.tasks.chains import build_chains
from rollwise.tasks.models import embedded_model_path, load_model_and_tokenizer

B = 32
ARMS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "majority of 16": ("uniform", 16, {}),
    "majority of 8": ("uniform", 8, {}),
    "majority of 4": ("uniform", 4, {}),
    "optpo, at most 16": ("optpo", 16, {"most": 16}),
    "optpo, at most 64": ("optpo", 16, {"most": 64}),
}
"""Rule, average rollouts a step may take of a prompt, settings of the rule."""
TRAINED = ("majority of 16", "majority of 8", "optpo, at most 16")


def main() -> None:
    """Print both tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=256)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    held_out = build_chains("test", 2 * given.prompts)
    rows, others = held_out.select(range(given.prompts)), held_out.select(range(given.prompts, 2 * given.prompts))
    model, tokenizer = load_model_and_tokenizer("embedded")
    before = measure(model, tokenizer, rows, others)
    print("before: " + ", ".join(f"{key} {value:.3f}" for key, value in before.items()))
    print(f"{'':<20}{'rollouts/prompt':>16}{'labels right':>14}" + "".join(f"{key:>16}" for key in before))
    tables: dict[str, dict[str, Any]] = {"same model": {}, "trained": {}}
    for table, passes, rate in (("same model", 1, 0.0), ("trained", given.passes, given.rate)):
        print(table)
        for name in ARMS if table == "same model" else TRAINED:
            measured = others if table == "trained" else None
            runs = [play(name, rows, passes, rate, seed, measured) for seed in range(given.seeds)]
            tables[table][name] = {key: [run[key] for run in runs] for key in runs[0]}
            means = {key: float(np.mean(values)) for key, values in tables[table][name].items()}
            line = f"{name:<20}{means['rollouts']:>16.2f}{means['right']:>14.3f}"
            print(line + "".join(f"{means[key]:>16.3f}" for key in before if key in means), flush=True)
    if given.out:
        settings = {"prompts": given.prompts, "passes": given.passes, "seeds": given.seeds, "rate": given.rate, "B": B}
        result = {"made": describe(), "settings": settings, "before": before, **tables}
        given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


class Labels(TrainerCallback):
    """Counts rollouts and labels that are right, step by step."""

    def __init__(self, answers: list[str]) -> None:
        self.answers = answers
        self.trainer: Any = None
        self.rollouts: list[int] = []
        self.right: list[bool] = []

    def on_step_end(self, *state: Any, **more: Any) -> None:
        """Look at the record of the step that just ended."""
        record = self.trainer.last_record
        leaders = {row.prompt_id: row.answer for row in record.rollouts if row.reward == 1.0}
        self.rollouts += record.counts.tolist()
        self.right += [leaders.get(key) == self.answers[int(key)] for key in record.prompt_ids]


def play(name: str, rows: Any, passes: int, rate: float, seed: int, others: Any = None) -> dict[str, float]:
    """One run through the trainer on prompts alone; accuracies where `others` are given."""
    rule, average, settings = ARMS[name]
    labels = Labels(list(rows["answer"]))
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        args = RollwiseGRPOConfig(
            output_dir=folder,
            allocator=rule,
            allocator_settings=settings,
            labels="majority",
            answers="whole",
            n_min=0,
            num_generations=average,
            per_device_train_batch_size=B * average,
            max_steps=passes * len(rows) // B,
            max_completion_length=9,
            learning_rate=rate,
            lr_scheduler_type="constant",
            seed=seed,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = RollwiseGRPOTrainer(
            str(embedded_model_path()), args=args, train_dataset=rows.select_columns("prompt"), callbacks=[labels]
        )
        labels.trainer = trainer
        trainer.train()
        found = {"rollouts": float(np.mean(labels.rollouts)), "right": float(np.mean(labels.right))}
        if others is not None:
            found |= measure(trainer.model, trainer.processing_class, rows, others)
    return found


def measure(model: Any, tokenizer: Any, rows: Any, others: Any) -> dict[str, float]:
    """Accuracy on both sets of prompts, sampled as in training and greedy."""
    return {
        f"{kind}, {name}": accuracy(model, tokenizer, part, kind == "sampled")
        for name, part in (("own", rows), ("others", others))
        for kind in ("sampled", "greedy")
    }


@torch.no_grad()
def accuracy(model: Any, tokenizer: Any, rows: Any, sample: bool) -> float:
    """Share of right answers: of 8 drawn at temperature 1, or of the one made of likeliest tokens."""
    model.eval()
    asked = tokenizer(list(rows["prompt"]), return_tensors="pt", padding=True, padding_side="left")
    inputs = {key: asked[key] for key in ("input_ids", "attention_mask")}
    times = 8 if sample else 1
    draw = (
        {"do_sample": True, "temperature": 1.0, "top_k": 0, "num_return_sequences": 8}
        if sample
        else {"do_sample": False}
    )
    torch.manual_seed(0)
    made = model.generate(**inputs, **draw, max_new_tokens=9, pad_token_id=tokenizer.pad_token_id)
    said = tokenizer.batch_decode(made[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    answers = [answer for answer in rows["answer"] for _ in range(times)]
    return float(np.mean([text.strip() == answer for text, answer in zip(said, answers, strict=True)]))


if __name__ == "__main__":
    main()
