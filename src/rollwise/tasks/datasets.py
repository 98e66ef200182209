"""Rows to train on, declared rather than coded: a file, a hub data set or the built-in chains, mapped to columns.

`DataSpec` is the `data:` part of a run's configuration; `load_rows` turns it into a data set with a column `prompt`.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rollwise.suggest import nearest
from rollwise.tasks.rewards import NUMBER
from rollwise.types import RollwiseError

if TYPE_CHECKING:
    from datasets import Dataset

CHAINS = "chains"
READERS = {".jsonl": "json", ".jsonl.gz": "json", ".json": "json", ".json.gz": "json", ".parquet": "parquet"}
"""File ending -> reader of the `datasets` library."""


class DataSpec(BaseModel):
    """Where rows come from and how they become prompts.

    For GSM8K: `{source: gsm8k.jsonl, columns: {prompt: question}, answer_after: "####", chat: true}`.
    """

    model_config = ConfigDict(extra="forbid")

    source: str = Field(min_length=1)
    """ "chains", a .jsonl, .json (both also .gz) or .parquet file, a folder, or a hub id; $VARIABLES are filled in."""
    subset: str | None = None
    """The configuration of a hub data set that has several, such as "main"."""
    split: str = "train"
    columns: dict[str, str] = {}
    """Column of ours -> column of the source, such as {prompt: question}; all others keep their names."""
    limit: int | None = Field(None, ge=1)
    """Rows to take; of chains, how many to make (default 2048, of the test split 512)."""
    shuffle: bool = False
    """Shuffle by `seed` before `limit` is applied."""
    seed: int = Field(0, ge=0)
    prompt_template: str | None = None
    """Text with columns in braces, such as "{prompt}\\nAnswer:"; a brace itself is written twice."""
    chat: bool = False
    """Make each prompt a conversation of one user message, for models with a chat template."""
    system_prompt: str | None = None
    """A first message of role system; needs `chat`."""
    answer_after: str | None = Field(None, min_length=1)
    """Keep only what follows the last such marker in `answer`; in numbers, thousands separators go."""

    @model_validator(mode="after")
    def _agree(self) -> DataSpec:
        if self.system_prompt is not None and not self.chat:
            raise ValueError("system_prompt: only conversations have one; set chat: true")
        return self


def load_rows(spec: DataSpec) -> Dataset:
    """The data set of `spec`: column `prompt` (text, or a list of messages with `chat`), `answer` where there is one,
    and the source's other columns.

    Raises:
        RollwiseError: in one line, for a source that is absent, unreadable (file and line where known) or empty, and a
            column that is missing (and those there are).
    """
    rows = _read_source(spec)
    if spec.shuffle:
        rows = rows.shuffle(seed=spec.seed)
    if spec.limit is not None:
        rows = rows.select(range(min(spec.limit, len(rows))))
    if len(rows) == 0:
        raise RollwiseError(f"data.source: {spec.source} has no rows in split {spec.split!r}; give one that has")
    rows = _map_columns(rows, spec)
    if spec.answer_after is not None:
        answers = [_answer_after(text, spec.answer_after, row) for row, text in enumerate(rows["answer"])]
        rows = rows.remove_columns("answer").add_column("answer", answers)
    if spec.prompt_template is not None or spec.chat:
        prompts = [_format_prompt(row, spec) for row in rows]
        rows = rows.remove_columns("prompt").add_column("prompt", prompts)
    return rows


def _read_source(spec: DataSpec) -> Dataset:
    if spec.source == CHAINS:
        from rollwise.tasks.chains import build_chains

        size = spec.limit or (512 if spec.split == "test" else 2048)
        return build_chains(spec.split, size, spec.seed)  # type: ignore[arg-type]
    source = os.path.expanduser(os.path.expandvars(spec.source))
    if missing := re.search(r"\$\{?(\w+)", source):
        raise RollwiseError(f"data.source: the environment variable {missing[1]} is not set; set it or give a path")
    path = Path(source)
    reader = next((READERS[ending] for ending in READERS if source.endswith(ending)), None)
    if path.is_file():
        if reader is None:
            raise RollwiseError(f"data.source: {source} is of no known kind; give a {', '.join(READERS)} file")
        return _read_file(path, reader, spec)
    if not path.exists() and (reader or source.startswith(("/", ".", "~")) or source.count("/") > 1):
        raise RollwiseError(f"data.source: {source} does not exist; give a file, a hub id or {CHAINS!r}")
    return _read_hub(source, path.exists(), spec)


def _read_file(path: Path, reader: str, spec: DataSpec) -> Dataset:
    from datasets import load_dataset

    name = re.split(r"\W", spec.split, maxsplit=1)[0] or "train"
    if path.stat().st_size == 0:
        raise RollwiseError(f"data.source: {path} is empty; give a file with rows")
    try:
        with _quiet():
            rows = load_dataset(reader, data_files={name: str(path)}, split=spec.split)
        rows.data.table.validate(full=True)  # text that is no UTF-8 would come up only when its row is reached
        return rows
    # The readers raise errors of pyarrow, pandas, gzip and json alike; all mean that the file can't be read.
    except Exception as error:
        reason = find_fault(path)
        raise RollwiseError(f"data.source: {path}: {reason or _first_line(error)}") from error


def find_fault(path: Path) -> str | None:
    """What is wrong with a data file, of JSON with the line where it can be told; None where nothing is found."""
    if path.suffix == ".parquet":
        return _find_parquet_fault(path)
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            if ".jsonl" not in path.suffixes:
                json.load(lines)
                return None
            rows = 0
            for number, line in enumerate(lines, 1):
                rows += bool(line.strip())
                if line.strip() and not isinstance(json.loads(line), dict):
                    return f"line {number} is not a JSON object"
            return None if rows else "it has no rows"
    except json.JSONDecodeError as error:
        line_number = number if ".jsonl" in path.suffixes else error.lineno
        return f"line {line_number} is not valid JSON ({error.msg})"
    except (OSError, EOFError, UnicodeDecodeError) as error:
        return f"unreadable after line {number} ({_first_line(error)})"


def _find_parquet_fault(path: Path) -> str | None:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        return None if ParquetFile(path).metadata.num_rows else "it has no rows"
    except (ArrowException, OSError) as error:
        return _first_line(error)


def _read_hub(source: str, local: bool, spec: DataSpec) -> Dataset:
    from datasets import load_dataset

    from rollwise.tasks.models import hub_reachable

    offline = not local and not hub_reachable()
    try:
        with _quiet(), _offline() if offline else nullcontext():
            return load_dataset(source, spec.subset, split=spec.split)
    # As in `_read_file`; the hub's client adds a dozen errors of its own.
    except Exception as error:
        if offline:
            message = f"{source} is no file and not in the hub's cache, and the hub is offline; give a local file"
        else:
            message = f"{source} could not be loaded ({_first_line(error)})"
        raise RollwiseError(f"data.source: {message}") from error


def _map_columns(rows: Dataset, spec: DataSpec) -> Dataset:
    needed = {"prompt": "prompt"} | ({"answer": "answer"} if spec.answer_after is not None else {}) | spec.columns
    for ours, theirs in needed.items():
        if theirs not in rows.column_names:
            held = ", ".join(rows.column_names)
            raise RollwiseError(
                f"data.columns.{ours}: {spec.source} has no column {theirs!r}; {nearest(theirs, rows.column_names)}"
                f" (columns: {held})"
            )
    moved = {ours: theirs for ours, theirs in spec.columns.items() if ours != theirs}
    gone = set(moved) | (set(moved.values()) - set(spec.columns))
    for ours, theirs in moved.items():
        rows = rows.add_column(f"new {ours}", list(rows[theirs]))
    rows = rows.remove_columns([name for name in rows.column_names if name in gone])
    rows = rows.rename_columns({f"new {ours}": ours for ours in moved})
    for row, prompt in enumerate(rows["prompt"]):
        if not isinstance(prompt, (str, list)) or not prompt:
            raise RollwiseError(f"data.columns.prompt: row {row} of {spec.source} has no text ({prompt!r:.40})")
    return rows


def _answer_after(text: Any, marker: str, row: int) -> str:
    _, found, tail = str(text).rpartition(marker)
    if not found:
        raise RollwiseError(f"data.answer_after: {marker!r} is not in the answer of row {row}; leave it out or mend")
    answer = tail.strip()
    return answer.replace(",", "") if NUMBER.fullmatch(answer) else answer


def _format_prompt(row: dict[str, Any], spec: DataSpec) -> str | list[dict[str, str]]:
    prompt = row["prompt"]
    if spec.prompt_template is not None:
        try:
            prompt = spec.prompt_template.format(**row)
        except (KeyError, IndexError, ValueError) as error:
            held = ", ".join(f"{{{name}}}" for name in row)
            raise RollwiseError(f"data.prompt_template: {type(error).__name__} {error}; it may use {held}") from error
    if not spec.chat:
        return prompt
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    return [{"role": "system", "content": spec.system_prompt}, *messages] if spec.system_prompt else messages


def _first_line(error: BaseException) -> str:
    cause = error.__cause__ or error
    text = (str(cause).strip().splitlines() or [""])[0]
    return f"{type(cause).__name__}: {text[:200]}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's progress bars and reports of its own, which would break up a run's lines."""
    import datasets

    bars, level = not datasets.are_progress_bars_disabled(), datasets.logging.get_verbosity()
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    try:
        yield
    finally:
        datasets.logging.set_verbosity(level)
        if bars:
            datasets.enable_progress_bars()


@contextmanager
def _offline() -> Iterator[None]:
    """With both libraries' offline switches on: only then is the cache looked at without half a minute of retries."""
    import datasets
    from huggingface_hub import constants

    switches = [(constants, constants.HF_HUB_OFFLINE), (datasets.config, datasets.config.HF_HUB_OFFLINE)]
    for holder, _ in switches:
        holder.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for holder, before in switches:
            holder.HF_HUB_OFFLINE = before
