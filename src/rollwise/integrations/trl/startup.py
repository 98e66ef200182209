"""What is checked and printed before the first rollout."""

from __future__ import annotations

from typing import Any

import numpy as np
import trl
from datasets import Dataset, IterableDataset

from rollwise.allocators.base import Allocator
from rollwise.allocators.uniform import Uniform
from rollwise.beliefs import prior_source
from rollwise.integrations.trl.config import BY_SCALE, RollwiseGRPOConfig
from rollwise.objectives import weighs_twice
from rollwise.solver import solve
from rollwise.step import Step
from rollwise.types import RollwiseError

INDEX = "rollwise_index"
"""Column that carries a row's number through the data loader; reward functions never see it."""

REFUSED = "rollout_func, environments, images, streams without prompt_id_column"


def with_index(dataset: Any, id_column: str | None) -> Any:
    """The training data with a column of row numbers, so that prompts keep their identity.

    Raises:
        RollwiseError: naming what cannot be used: streams without an id column, images, a missing id column, lazily
            transformed data that would hide the added column.
    """
    if dataset is None:
        raise RollwiseError("train_dataset: none given; pass a datasets.Dataset with a column 'prompt'")
    columns = list(dataset.column_names or next(iter(dataset)).keys())
    if "prompt" not in columns:
        raise RollwiseError(f"train_dataset: no column 'prompt' (columns: {', '.join(columns)})")
    if {"image", "images"} & set(columns):
        raise RollwiseError("train_dataset: images are not supported; drop the image column or use TRL's own trainer")
    if id_column is not None and id_column not in columns:
        raise RollwiseError(f"prompt_id_column: no column {id_column!r} (columns: {', '.join(columns)})")
    if isinstance(dataset, IterableDataset):
        if id_column is None:
            raise RollwiseError("prompt_id_column: a streamed train_dataset needs one, the column that names a prompt")
        return dataset
    if not isinstance(dataset, Dataset):
        raise RollwiseError(f"train_dataset: {type(dataset).__name__} is not supported; use a datasets.Dataset")
    if INDEX in columns:
        dataset = dataset.remove_columns(INDEX)
    indexed = dataset.add_column(INDEX, list(range(len(dataset))))
    if len(indexed) and INDEX not in indexed[0]:
        raise RollwiseError("train_dataset: an on-the-fly transform hides added columns; apply it with .map() first")
    return indexed


def check_batch(prompts: int, generations: int, adaptive: bool) -> None:
    """Raise `RollwiseError` where a step holds a single prompt and the rule is adaptive: nothing could be allocated."""
    if adaptive and prompts == 1:
        raise RollwiseError(
            f"allocator: a step holds 1 prompt x {generations} rollouts, so there is nothing to allocate; raise "
            "steps_per_generation (or gradient_accumulation_steps) to 4 or more, or set allocator='uniform'"
        )


def has_relative_positions(config: Any) -> bool:
    """Whether a model's scores do not depend on how far a prompt is padded: rotary or ALiBi positions, or none at all."""
    text = config.get_text_config()
    signs = ("rope_parameters", "rope_theta", "rope_scaling", "rotary_dim", "rotary_pct", "alibi")
    return any(getattr(text, sign, None) for sign in signs) or not hasattr(text, "max_position_embeddings")


def rehearse(rule: Allocator, prompts: int, budget: int, args: RollwiseGRPOConfig) -> None:
    """Decide the first wave of a step of B prompts and N rollouts without generating anything.

    Impossible settings fail here and not in the middle of a run, and tables are solved before the first step.

    Raises:
        RollwiseError: naming the setting.
    """
    Step(
        [str(slot) for slot in range(prompts)],
        rule,
        budget,
        rng=np.random.default_rng(0),
        waves=args.waves,
        quantum=args.world_size,
        prior=prior_source(args.prior).for_step([str(slot) for slot in range(prompts)]),
        n_min=args.n_min,
        n_max=args.n_max,
    ).next_wave()


def small_step_warning(rule: Allocator, prompts: int, budget: int) -> list[str]:
    """One line for an adaptive step of fewer than four prompts: what it can gain, and what would raise that."""
    utility = getattr(rule, "utility", None)
    if utility is None or not 1 < prompts < 4:
        return []
    solution = solve(utility, prompts, budget)
    gain = solution.value / solution.uniform_value - 1 if solution.uniform_value else 0.0
    return [
        f"rollwise: only {prompts} prompts share a step: expected {utility.name} {gain:+.0%} over uniform at best; "
        "more prompts (steps_per_generation, gradient_accumulation_steps) give the rule more to choose from"
    ]


def summary_lines(args: RollwiseGRPOConfig, rule: Allocator, outcome: str) -> list[str]:
    """The start-up summary, one line each: what a step is, how it is allocated, what is refused."""
    uniform = isinstance(rule, Uniform)
    waves = f"{args.waves} waves"
    if args.sequential and not uniform:
        waves = "sequential"
    elif uniform and not args.force_waves:
        waves = "1 wave"
    utility = getattr(rule, "utility", None)
    advantage = args.advantage or BY_SCALE[args.scale_rewards]
    twice = weighs_twice(args.objective, advantage)
    return [
        f"rollwise: TRL {trl.__version__} | B = {args.generation_batch_size // args.num_generations} prompts x "
        f"G = {args.num_generations} rollouts = N = {args.generation_batch_size} per step, {args.world_size} process(es)",
        f"rollwise: allocator {rule.name}{f'({utility.name})' if utility else ''} | {waves} | n_min {args.n_min}, "
        f"n_max {args.n_max or 'none'} | prior {args.prior}",
        f"rollwise: weighting {args.weighting} | advantage {advantage} | objective {args.objective} | "
        f"outcome from {outcome}",
        f"rollwise: refused: {REFUSED}",
        *([f"rollwise: warning: {twice}"] if twice else []),
    ]
