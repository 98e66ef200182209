"""The prompts of a step: which enter, under which id, and the row each process generates from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accelerate.utils import gather_object

from rollwise.integrations.trl.dataset import INDEX
from rollwise.types import RollwiseError

ID = "rollwise_id"
"""Key a row's id travels under between processes."""


@dataclass(frozen=True)
class Prompts:
    """`ids`, one entry per time a prompt enters the step (B in all); `rows`, every prompt's row by id, on all processes."""

    ids: tuple[str, ...]
    rows: dict[str, dict[str, Any]]


def gather_prompts(inputs: Sequence[dict[str, Any]], id_column: str | None, generations: int) -> Prompts:
    """The prompts of a block over all processes, given this one's rows: `generations` copies of each, as TRL lays them.

    Raises:
        RollwiseError: for a row without an id, or one id for two prompts.
    """
    ids = [_id_of(row, id_column) for row in inputs]
    own: dict[str, dict[str, Any]] = {}
    for key, row in zip(ids, inputs, strict=True):
        clean = {name: value for name, value in row.items() if name != INDEX}
        own.setdefault(f"{key}\x1f{row['prompt']}", clean | {ID: key})
    copies: Counter[str] = Counter(gather_object(ids))
    rows: dict[str, dict[str, Any]] = {}
    # any process may be asked to generate for any prompt of the step
    for row in gather_object(list(own.values())):
        key = row.pop(ID)
        if rows.setdefault(key, row)["prompt"] != row["prompt"]:
            raise RollwiseError(
                f"prompt_id_column: two different prompts are called {key!r}; give each prompt an id of its own"
            )
    return Prompts(tuple(Counter({key: n // generations for key, n in copies.items()}).elements()), rows)


def _id_of(row: dict[str, Any], id_column: str | None) -> str:
    found = row[id_column or INDEX]
    if found is None:
        raise RollwiseError(f"prompt_id_column: a row has no {id_column!r}; name every prompt")
    return str(found)
