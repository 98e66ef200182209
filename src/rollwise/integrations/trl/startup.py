"""What is checked and printed before the first rollout."""

from __future__ import annotations

from typing import Any

import numpy as np
from datasets import Dataset, IterableDataset

from rollwise.allocators.base import Allocator
from rollwise.beliefs import parse_prior
from rollwise.integrations.trl.config import RollwiseGRPOConfig
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
        prior=parse_prior(args.prior),
        n_min=args.n_min,
        n_max=args.n_max,
    ).next_wave()


def summary_lines(facts: dict[str, Any]) -> list[str]:
    """The start-up summary, one line each: what a step is, how it is allocated, what is refused."""
    return [
        "rollwise: TRL {trl} | B = {prompts} prompts x G = {generations} rollouts = N = {budget} per step, "
        "{world} process(es)".format(**facts),
        "rollwise: allocator {allocator} | {waves} | n_min {n_min}, n_max {n_max} | prior Beta({prior})".format(
            **facts
        ),
        "rollwise: weighting {weighting} | advantage {advantage} | outcome from {outcome}".format(**facts),
        f"rollwise: refused: {REFUSED}",
    ]
