"""`rollwise analyze difficulty --config`: a model on a data set, only the unsolved prompts sampled further."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from rollwise.simulate.difficulty import sample_first_solved
from rollwise.types import IntArray, RollwiseError


def run_model(
    config: str | Path | None = None,
    overrides: dict[str, Any] | None = None,
    prompts: int = 200,
    limit: int = 128,
    report: Callable[[int, int], None] = lambda prompts, rollouts: None,
) -> dict[str, Any]:
    """Difficulty of the first `prompts` rows for a model, JSON-able: `difficulty` for its pool, and each prompt's rollout.

    Args:
        config: YAML as for `rollwise train`, of which model, data, rewards, outcome, temperature, lengths, seed and
            `evaluation.batch` are read; None is the demo.
        overrides: dotted settings on top, such as {"model": "embedded"}.
        report: told before each bin how many prompts are unsolved and how many rollouts each gets.

    A completion is solved above `outcome_threshold` (0.5 where it is not set); an unknown one counts as unsolved and is
    counted in `unknown`, a share of all.

    Raises:
        RollwiseError: naming the setting that does not fit.
    """
    try:
        import torch

        from rollwise.cli.config import read_config
        from rollwise.cli.evaluation import call, complete, named
        from rollwise.cli.preflight import check_columns, load_inputs
        from rollwise.tasks.models import load_model_and_tokenizer
    except ImportError as error:
        raise RollwiseError(f"analyze: {error.name} is not installed; pip install 'rollwise[train]'") from None
    if prompts < 1:
        raise RollwiseError(f"prompts: {prompts}; give 1 or more")
    settings = read_config(Path(config) if config is not None else None, overrides or {})
    inputs = load_inputs(settings)
    score = inputs.outcome if callable(inputs.outcome) else named(inputs)
    check_columns(score, inputs.rows.column_names, "data")
    model, tokenizer = load_model_and_tokenizer(settings.model, gguf_file=settings.gguf_file)
    player = SimpleNamespace(model=model.eval(), processing_class=tokenizer)
    rows = inputs.rows.select(range(min(prompts, len(inputs.rows))))
    above = settings.outcome_threshold if settings.outcome_threshold is not None else 0.5
    unknown: list[bool] = []

    def draw(which: IntArray, k: int) -> np.ndarray:
        report(len(which), k)
        places = np.repeat(which, k)
        scores: list[float] = []
        for start in range(0, len(places), settings.evaluation.batch):
            batch = rows.select(places[start : start + settings.evaluation.batch].tolist())
            made = complete(player, batch["prompt"], settings, sample=True)
            columns = {name: list(batch[name]) for name in batch.column_names if name != "prompt"}
            scores += call(score, prompts=list(batch["prompt"]), completions=made, **columns)
        found = np.array(scores)
        unknown.extend(np.isnan(found).tolist())
        # comparing with NaN is False
        return (found > above).reshape(len(which), k)

    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        found, solved = sample_first_solved(draw, len(rows), limit)
    first = [None if np.isnan(at) else int(at) for at in solved]
    entry = asdict(found) | {"prompts": len(rows), "unknown": float(np.mean(unknown)), "first_solved": first}
    return {"limit": limit, "pools": {f"{settings.model} on {settings.data.source}": entry}}
