"""Rows to train on, declared rather than coded: a file, a hub data set or the built-in chains, mapped to columns.

`DataSpec` is the `data:` part of a run's configuration; `load_rows` turns it into a data set with a column `prompt`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rollwise.suggest import nearest
from rollwise.tasks.catalogue import CATALOGUE
from rollwise.tasks.extraction import NUMBER
from rollwise.tasks.gym import INSTRUCTION, PREFIX, build_gym
from rollwise.tasks.named import load_named, template_of
from rollwise.tasks.sources import READERS, read_file, read_hub
from rollwise.types import RollwiseError

if TYPE_CHECKING:
    from datasets import Dataset

CHAINS = "chains"


class DataSpec(BaseModel):
    """Where rows come from and how they become prompts.

    For GSM8K: `{source: gsm8k.jsonl, columns: {prompt: question}, answer_after: "####", chat: true}`.
    """

    model_config = ConfigDict(extra="forbid")

    source: str = Field(min_length=1)
    """A name of the catalogue (gsm8k, math, ...), "chains", "reasoning_gym/<name>", a .jsonl, .json (both also .gz) or
    .parquet file, a folder ("./gsm8k" where a name is taken), or a hub id; $VARIABLES are filled in."""
    options: dict[str, Any] = {}
    """Settings of a reasoning-gym data set, such as {min_terms: 2}."""
    revision: str | None = None
    """Branch, tag or commit of a hub data set."""
    subset: str | None = None
    """The configuration of a hub data set that has several, such as "main"."""
    split: str = "train"
    columns: dict[str, str] = {}
    """Column of ours -> column of the source, such as {prompt: question}; all others keep their names."""
    limit: int | None = Field(None, ge=1)
    """Rows to take; of chains and reasoning-gym, how many to make (default 2048, of the test split 512)."""
    skip: int = Field(0, ge=0)
    """Rows to leave out before `limit` is counted, such as those a validation set is made of."""
    shuffle: bool = False
    """Shuffle by `seed` before `limit` is applied."""
    seed: int = Field(0, ge=0)
    """Seed of what is drawn: procedural rows, `shuffle`, and the split of data sets that publish none (colota)."""
    prompt_template: str | None = None
    """Text with columns in braces, such as "{prompt}\\nAnswer:"; a brace itself is written twice. Data sets of the
    catalogue and reasoning-gym have one for conversations and one for base models, unless this is given."""
    chat: bool = False
    """Make each prompt a conversation of one user message, for models with a chat template."""
    system_prompt: str | None = None
    """A first message of role system; needs `chat`."""
    answer_after: str | None = Field(None, min_length=1)
    """Keep only what follows the last such marker in `answer`; in numbers, thousands separators go."""
    verifier: str | None = None
    """How answers are judged: the default reward of a run and the verifier of an evaluation. Named sets have theirs."""

    @field_validator("prompt_template")
    @classmethod
    def _no_widths(cls, given: str | None) -> str | None:
        if given is not None and (wide := re.search(r"\{[^{}]*:[^{}]*(?:\d{4,}|\{)[^}]*\}", given)):
            raise ValueError(
                f"prompt_template: {wide[0][:40]!r} asks for a width; write columns alone, such as {{prompt}}"
            )
        return given

    @model_validator(mode="after")
    def _agree(self) -> DataSpec:
        if self.system_prompt is not None and not self.chat:
            raise ValueError("system_prompt: only conversations have one; set chat: true")
        if self.skip and (self.source == CHAINS or self.source.startswith(PREFIX)):
            raise ValueError("skip: procedural rows have no order to skip in; give another seed")
        if self.options and not self.source.startswith(PREFIX):
            raise ValueError(f"options: only sources {PREFIX}... have them; leave them out")
        return self

    @property
    def judged_by(self) -> str | None:
        """The verifier set here, else that of the named data set; None where neither says."""
        if self.verifier is not None:
            return self.verifier
        if self.source in CATALOGUE:
            return CATALOGUE[self.source].verifier
        if self.source.startswith(PREFIX):
            return "reasoning_gym"
        return "exact_match" if self.source == CHAINS else None


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
    if spec.limit is not None or spec.skip:
        last = len(rows) if spec.limit is None else min(spec.skip + spec.limit, len(rows))
        rows = rows.select(list(range(spec.skip, last)))
    if len(rows) == 0:
        raise RollwiseError(f"data.source: {spec.source} has no rows in split {spec.split!r}; give one that has")
    rows = _map_columns(rows, spec)
    if spec.answer_after is not None:
        answers = [_answer_after(text, spec.answer_after, row) for row, text in enumerate(rows["answer"])]
        rows = rows.remove_columns("answer").add_column("answer", answers)
    if (template := _template(spec)) is not None or spec.chat:
        prompts = [_format_prompt(row, spec, template) for row in rows]
        rows = rows.remove_columns("prompt").add_column("prompt", prompts)
    return rows


def _read_source(spec: DataSpec) -> Dataset:
    if spec.source == CHAINS:
        from rollwise.tasks.chains import build_chains

        size = spec.limit or (512 if spec.split == "test" else 2048)
        return build_chains(spec.split, size, spec.seed)  # type: ignore[arg-type]
    if spec.source in CATALOGUE:
        return load_named(spec.source, spec.split, spec.seed, spec.revision)
    if spec.source.startswith(PREFIX):
        size = spec.limit or (512 if spec.split == "test" else 2048)
        return build_gym(spec.source.removeprefix(PREFIX), spec.split, size, spec.seed, spec.options)
    source = os.path.expanduser(os.path.expandvars(spec.source))
    if missing := re.search(r"\$\{?(\w+)", source):
        raise RollwiseError(f"data.source: the environment variable {missing[1]} is not set; set it or give a path")
    path = Path(source)
    reader = next((READERS[ending] for ending in READERS if source.endswith(ending)), None)
    if path.is_file():
        if reader is None:
            raise RollwiseError(f"data.source: {source} is of no known kind; give a {', '.join(READERS)} file")
        return read_file(path, reader, spec.split)
    if not path.exists() and (reader or source.startswith(("/", ".", "~")) or source.count("/") > 1):
        raise RollwiseError(f"data.source: {source} does not exist; give a file, a hub id or {CHAINS!r}")
    return read_hub(source, spec.subset, spec.split, spec.revision, local=path.exists())


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


def _template(spec: DataSpec) -> str | None:
    if spec.prompt_template is not None:
        return spec.prompt_template
    if spec.source in CATALOGUE:
        return template_of(spec.source, spec.chat)
    return f"{{prompt}}\n\n{INSTRUCTION}" if spec.source.startswith(PREFIX) else None


def _format_prompt(row: dict[str, Any], spec: DataSpec, template: str | None) -> str | list[dict[str, str]]:
    prompt = row["prompt"]
    if template is not None:
        try:
            prompt = template.format(**row)
        except (KeyError, IndexError, ValueError) as error:
            held = ", ".join(f"{{{name}}}" for name in row)
            raise RollwiseError(f"data.prompt_template: {type(error).__name__} {error}; it may use {held}") from error
    if not spec.chat:
        return prompt
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    return [{"role": "system", "content": spec.system_prompt}, *messages] if spec.system_prompt else messages
