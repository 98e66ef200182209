"""What an evaluation reads: its data, the columns it is broken down by, and the model's tokenizer."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rollwise.cli.config import read_yaml
from rollwise.cli.faults import explain
from rollwise.cli.switches import refuse_switches
from rollwise.cli.values import short
from rollwise.tasks.catalogue import CATALOGUE
from rollwise.tasks.datasets import DataSpec
from rollwise.tasks.verifiers import Verifier
from rollwise.types import RollwiseError


def read_data(data: str, split: str | None, limit: int | None, chat: bool | None) -> DataSpec:
    """The data to evaluate on: a name of the catalogue, a file, a hub id, or a .yaml file with a `data:` part.

    Raises:
        RollwiseError: settings that do not fit.
    """
    given: dict[str, Any] = {"source": data}
    if data.endswith((".yaml", ".yml")):
        given = read_yaml(Path(data))
        given = dict(given.get("eval_data") or given.get("data") or given)
    given.setdefault("split", "test" if data in CATALOGUE or given.get("source") == data else "train")
    given |= {key: value for key, value in {"split": split, "limit": limit, "chat": chat}.items() if value is not None}
    refuse_switches(given, DataSpec, "data.")
    try:
        return DataSpec.model_validate(given)
    except ValidationError as error:
        raise RollwiseError(f"--data {explain(error, DataSpec)}") from None


def wants_chat(model: str, endpoint: str | None, gguf_file: str | None = None) -> bool:
    """Whether prompts are conversations: at an endpoint, and where the model's tokenizer has a template."""
    return endpoint is not None or read_tokenizer(model, gguf_file).chat_template is not None


@functools.lru_cache(1)
def read_tokenizer(model: str, gguf_file: str | None) -> Any:
    """The tokenizer of a model, whose weights are not read.

    Raises:
        RollwiseError: it cannot be had.
    """
    from transformers import AutoTokenizer

    from rollwise.tasks.models import hub_reachable, locate_model

    folder, file = locate_model(model, gguf_file)
    options: dict[str, Any] = {"gguf_file": file} if file else {}
    if not Path(folder).is_dir() and not hub_reachable():
        options["local_files_only"] = True
    try:
        return AutoTokenizer.from_pretrained(folder, **options)
    # The libraries below have errors of their own, and all mean that the model cannot be had.
    except Exception as error:
        reason = " ".join(str(error).split())[:150]
        raise RollwiseError(f"model: {model} has no readable tokenizer ({type(error).__name__}: {reason})") from error


def check_columns(verifier: Verifier, held: Sequence[str]) -> None:
    """Raise `RollwiseError` where the rows lack the column a verifier compares with."""
    first = verifier.columns[:1]
    if first and first[0] not in held:
        raise RollwiseError(f"--verifier: {verifier.name} needs a column {first[0]!r}; the data has {', '.join(held)}")


def read_groups(source: str, by: Sequence[str], rows: Any) -> dict[str, list[Any]]:
    """Column -> its values, of those to break down by: those of a named data set, and those asked for.

    Raises:
        RollwiseError: one that the data lacks, or whose values have no order, such as lists.
    """
    groups: dict[str, list[Any]] = {}
    for name in by:
        if name not in rows.column_names:
            raise RollwiseError(f"--by: no column {name!r}; the data has {', '.join(rows.column_names)}")
    for name in [*(CATALOGUE[source].groups if source in CATALOGUE else ()), *by]:
        groups[name] = rows[name][:]
        if odd := next((value for value in groups[name] if isinstance(value, (list, dict))), None):
            raise RollwiseError(f"--by: {name!r} holds {short(odd)}; give a column of texts or numbers")
    return groups
