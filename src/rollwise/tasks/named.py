"""The rows of a data set of the catalogue: read from disk or the hub, split where no split is published."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rollwise.suggest import nearest
from rollwise.tasks import sources
from rollwise.tasks.catalogue import CATALOGUE, NamedSet, Source
from rollwise.types import RollwiseError

if TYPE_CHECKING:
    from datasets import Dataset

VARIABLE = "ROLLWISE_DATA"
"""The folder that holds gsm8k/, math/ and the others."""


def load_named(name: str, split: str, seed: int = 0, revision: str | None = None) -> Dataset:
    """The Problems of a split: from `$ROLLWISE_DATA` where that has its files, else from the hub.

    Raises:
        RollwiseError: an unknown split, a data set that is in neither place, or rows that do not read.
    """
    from datasets import Dataset

    named = CATALOGUE[name]
    if split not in named.splits:
        raise RollwiseError(f"data.split: {name} has no split {split!r}; {nearest(split, named.splits)}")
    source = named.splits[split]
    paths = local_files(source)
    rows = read_local(paths) if paths else read_hub(named, source, revision)
    try:
        problems = [problem for row in rows if (problem := named.read(row, split)) is not None]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        place = ", ".join(str(path) for path in paths) or source.hub
        raise RollwiseError(f"data.source: {name} at {place} has other rows than expected ({error!r})") from error
    if named.holdout is not None:
        prompts = [problem["prompt"] for problem in problems]
        problems = [problems[index] for index in split_by_seed(prompts, named.holdout, split, seed)]
    return Dataset.from_list(problems)


def local_files(source: Source) -> list[Path]:
    """The split's files below `$ROLLWISE_DATA`; nothing where the variable is not set or one is absent."""
    folder = os.environ.get(VARIABLE)
    paths = [Path(folder).expanduser() / file for file in source.files] if folder else []
    return paths if all(path.is_file() for path in paths) else []


def read_local(paths: list[Path]) -> list[dict[str, Any]]:
    """The rows of .jsonl.gz files, one after the other."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        try:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                rows += [json.loads(line) for line in lines]
        except (OSError, EOFError, ValueError) as error:
            raise RollwiseError(f"data.source: {path} cannot be read ({error}); copy it again") from error
    return rows


def read_hub(named: NamedSet, source: Source, revision: str | None) -> Any:
    """The rows of the split's hub data set."""
    if source.hub is None:
        held = ", ".join(source.files)
        raise RollwiseError(f"data.source: {named.name} is on no hub; set {VARIABLE} to a folder with {held}")
    try:
        return sources.read_hub(source.hub, source.subset, source.split, revision or source.revision)
    except RollwiseError as error:
        held = f"; or set {VARIABLE} to a folder with {', '.join(source.files)}" if source.files else ""
        raise RollwiseError(f"{error}{held}") from error


def split_by_seed(prompts: Sequence[str], holdout: float, split: str, seed: int) -> list[int]:
    """Indices, in order, of split "test" (the share `holdout` of the different prompts, drawn by `seed`) or of the rest.

    A prompt that occurs twice is on one side.
    """
    different = list(dict.fromkeys(prompts))
    order = np.random.default_rng(seed).permutation(len(different))
    held = {different[index] for index in order[: round(len(different) * holdout)]}
    return [index for index, prompt in enumerate(prompts) if (prompt in held) == (split == "test")]


def template_of(name: str, chat: bool) -> str:
    """The prompt template of a data set of the catalogue: for conversations, or for a base model."""
    named: Mapping[str, NamedSet] = CATALOGUE
    return "{prompt}\n\n" + named[name].chat.replace("{", "{{").replace("}", "}}") if chat else named[name].base
