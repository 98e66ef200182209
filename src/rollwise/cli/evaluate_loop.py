"""The work of an evaluation: its settings, the batches they stand for, generated and verified side by side."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rollwise.cli.evaluate_store import EvaluationStore
from rollwise.tasks.catalogue import CATALOGUE
from rollwise.tasks.datasets import DataSpec
from rollwise.tasks.generation import Completion, Generator, Sampling
from rollwise.tasks.verdict import Verdict
from rollwise.tasks.verifiers import Verifier, judge_later
from rollwise.types import RollwiseError


class EvaluateConfig(BaseModel):
    """All that an evaluation depends on; two that agree in this go on from each other."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: str = Field("embedded", min_length=1)
    endpoint: str | None = None
    gguf_file: str | None = None
    dtype: str = "auto"
    data: DataSpec
    verifier: str
    greedy: bool = True
    samples: int = Field(0, ge=0)
    temperature: float = Field(0.6, gt=0)
    top_p: float = Field(0.95, gt=0, le=1)
    max_tokens: int = Field(512, ge=1)
    batch: int = Field(16, ge=1)
    seed: int = Field(0, ge=0)


@dataclass(frozen=True)
class Item:
    """One completion to make: its kind, row and sample."""

    kind: str
    row: int
    sample: int

    @property
    def key(self) -> tuple[str, int, int]:
        """What it is known by in the store."""
        return self.kind, self.row, self.sample


def generate(
    generator: Generator,
    config: EvaluateConfig,
    verifier: Verifier,
    rows: Any,
    batches: Sequence[Sequence[Item]],
    store: EvaluationStore,
    progress: bool,
) -> None:
    """Complete the batches one after the other, each verified while the next is generated.

    Raises:
        RollwiseError: a batch cannot be completed; those before it are stored.
    """
    total = sum(len(batch) for batch in batches)
    made = 0
    pending: list[tuple[Sequence[Item], list[Completion], list[Future[Verdict]]]] = []
    for batch in batches:
        try:
            completions = complete(generator, config, rows, batch)
        except RollwiseError:
            for entry in pending:
                store.add(judged(*entry))
            raise
        futures = [
            judge_later(verifier, completion.text, rows[item.row])
            for item, completion in zip(batch, completions, strict=True)
        ]
        pending.append((batch, completions, futures))
        while len(pending) > 1 or (pending and all(future.done() for future in pending[0][2])):
            store.add(judged(*pending.pop(0)))
        made += len(batch)
        if progress and sys.stderr.isatty():
            print(f"\r{made} of {total} completions", end="", file=sys.stderr, flush=True)
    for entry in pending:
        store.add(judged(*entry))
    if progress and sys.stderr.isatty():
        print(file=sys.stderr)


def complete(generator: Generator, config: EvaluateConfig, rows: Any, batch: Sequence[Item]) -> list[Completion]:
    """The completions of one batch, drawn from seeds that depend on nothing but the settings and the item."""
    stop = CATALOGUE[config.data.source].stop if config.data.source in CATALOGUE and not config.data.chat else ()
    greedy = batch[0].kind == "greedy"
    sampling = Sampling(
        temperature=0.0 if greedy else config.temperature,
        top_p=1.0 if greedy else config.top_p,
        max_tokens=config.max_tokens,
        stop=stop,
    )
    seeds = [
        int(np.random.SeedSequence([config.seed, item.row, item.sample]).generate_state(1)[0] >> 1) for item in batch
    ]
    return generator.complete([rows[item.row]["prompt"] for item in batch], sampling, seeds)


def judged(
    batch: Sequence[Item], completions: Sequence[Completion], futures: Sequence[Future[Verdict]]
) -> Iterator[dict[str, Any]]:
    """Lines of the store, once the verdicts are there."""
    for item, completion, future in zip(batch, completions, futures, strict=True):
        verdict = future.result()
        yield {
            "kind": item.kind,
            "row": item.row,
            "sample": item.sample,
            "completion": plain(completion.text),
            "tokens": completion.tokens,
            "ended": completion.ended,
            "outcome": verdict.outcome.value,
            "reason": plain(verdict.reason),
            "answer": None if verdict.answer is None else plain(verdict.answer),
        }


def plain(text: str) -> str:
    """The text with lone surrogates replaced: a server may send them, and no file can hold them."""
    return text.encode("utf-8", "replace").decode()


def plan_batches(config: EvaluateConfig, lengths: Sequence[int]) -> Iterator[list[Item]]:
    """Batches in the order they are made: greedy first, prompts of like length together (less padding)."""
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row], row))
    kinds = [("greedy", 1)] * config.greedy + [("sampled", config.samples)] * bool(config.samples)
    for kind, samples in kinds:
        items = (Item(kind, row, sample) for row in order for sample in range(samples))
        while batch := list(itertools.islice(items, config.batch)):
            yield batch
