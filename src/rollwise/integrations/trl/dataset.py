"""The training data, checked, with a column that lets prompts keep their identity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from datasets import Dataset, IterableDataset

from rollwise.types import RollwiseError

INDEX = "rollwise_index"
"""Column that carries a row's number through the data loader; reward functions never see it."""

RESERVED = (
    INDEX,
    "rollwise_id",
    "prompts",
    "completions",
    "completion_ids",
    "trainer_state",
    "log_extra",
    "log_metric",
    "environments",
)
"""Names a reward function gets from the trainer, and ours: a column of that name would be lost or clash with them."""


def with_index(dataset: Any, id_column: str | None) -> Any:
    """The training data with a column of row numbers, so that prompts keep their identity.

    Raises:
        RollwiseError: naming what cannot be used: streams without an id column, images, a missing id column, a column
            whose name the trainer needs, lazily transformed data that would hide the added column.
    """
    if dataset is None:
        raise RollwiseError("train_dataset: none given; pass a datasets.Dataset with a column 'prompt'")
    if not isinstance(dataset, (Dataset, IterableDataset)):
        raise RollwiseError(f"train_dataset: {type(dataset).__name__} is not supported; use a datasets.Dataset")
    columns = list(dataset.column_names or next(iter(dataset), {}))
    shown = ", ".join(columns)
    if "prompt" not in columns:
        raise RollwiseError(f"train_dataset: no column 'prompt' (columns: {shown})")
    if {"image", "images"} & set(columns):
        raise RollwiseError("train_dataset: images are not supported; drop the image column or use TRL's own trainer")
    for name in columns:
        if name in RESERVED:
            raise RollwiseError(f"train_dataset: a column may not be called {name!r}, the trainer uses it; rename it")
    if id_column is not None and id_column not in columns:
        raise RollwiseError(f"prompt_id_column: no column {id_column!r} (columns: {shown})")
    if isinstance(dataset, IterableDataset):
        if id_column is None:
            raise RollwiseError("prompt_id_column: a streamed train_dataset needs one, the column that names a prompt")
        return dataset
    indexed = dataset.add_column(INDEX, list(range(len(dataset))))
    if len(indexed) and INDEX not in indexed[0]:
        raise RollwiseError("train_dataset: an on-the-fly transform hides added columns; apply it with .map() first")
    return indexed


def check_rows(dataset: Any, prompts: int) -> None:
    """Raise `RollwiseError` where the data cannot fill one step of B prompts: TRL would end without a single step."""
    if isinstance(dataset, Dataset) and len(dataset) < prompts:
        raise RollwiseError(
            f"train_dataset: {len(dataset)} rows cannot fill a step of B = {prompts} prompts; add rows, or lower "
            "per_device_train_batch_size, steps_per_generation or gradient_accumulation_steps"
        )


def check_prompts(prompts: Iterable[Any], tokenizer: Any) -> None:
    """Raise `RollwiseError` for a prompt of no tokens: generation fails in TRL where one comes first."""
    if any(prompt == "" for prompt in prompts) and not tokenizer("")["input_ids"]:
        raise RollwiseError("train_dataset: an empty prompt gives this tokenizer no token; remove it, or give it text")
