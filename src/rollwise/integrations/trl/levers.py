"""The selector and curators of a run in TRL: built once, asked before and after every generation round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from datasets import Dataset

from rollwise.beliefs import PriorSource
from rollwise.curators import Curator, get_curator
from rollwise.integrations.trl.config import RollwiseGRPOConfig
from rollwise.integrations.trl.dataset import INDEX
from rollwise.integrations.trl.prompts import Prompts
from rollwise.integrations.trl.rows import Payload
from rollwise.methods import REGROUPING, check_mix, check_used, overlaps, split_names
from rollwise.selectors import Selector, get_selector
from rollwise.selectors.passes import Passes
from rollwise.types import RollwiseError, StepRecord

MOST_IDLE = 100
"""Rounds in a row without an update before the run gives up."""


class Levers:
    """What chooses prompts and rows.

    `spare` draws the prompts of further rounds where TRL's sampler gave those of the first; `payload` keeps the tensors of
    rollouts that curators hold.
    """

    def __init__(self, args: RollwiseGRPOConfig, dataset: Any, prompts: int) -> None:
        """Build both.

        Raises:
            RollwiseError: naming a lever that cannot be used, or why two cannot be used together.
        """
        every = args.steps_per_generation * args.num_iterations
        updates = max(1, every // args.gradient_accumulation_steps)
        given = args.curator_settings or {}
        self.curators: tuple[Curator, ...] = tuple(
            get_curator(name, given.get(name), updates=updates) for name in split_names(args.curators)
        )
        check_used(args.selector, args.selector_settings, split_names(args.curators), given)
        self.selector: Selector | None = None
        self._data = dataset if isinstance(dataset, Dataset) else None
        self._pool: list[str] = []
        if (args.selector or self.curators) and self._data is None:
            raise RollwiseError(
                "selector, curators: need a datasets.Dataset whose rows can be looked up, not a stream"
            )
        if self._data is not None:
            named = args.prompt_id_column
            self._pool = [str(key) for key in self._data[named]] if named else [str(k) for k in range(len(self._data))]
        if args.selector:
            steps = count_blocks(args, len(self._pool), prompts)
            self.selector = get_selector(args.selector, args.selector_settings, steps=steps, seed=args.seed)
        check_mix(self.selector, self.curators, args.advantage)
        regrouping = set(REGROUPING) & {curator.name for curator in self.curators}
        if regrouping and args.multi_objective_aggregation == "normalize_then_sum" and args.advantage is None:
            raise RollwiseError(
                f"multi_objective_aggregation: normalize_then_sum does not go with {min(regrouping)}, which computes "
                "advantages anew over the rows it keeps; use sum_then_normalize"
            )
        self.warnings = overlaps(self.curators, args.objective)
        self.spare = Passes(args.seed + 1)
        self.payload = Payload()
        self.idle = 0

    @property
    def needs(self) -> frozenset[str]:
        """What rollouts must carry; see `rollwise.curators.base.NEEDS`."""
        wanted = frozenset().union(*(curator.needs for curator in self.curators))
        return wanted | (self.selector.needs if self.selector else frozenset())

    @property
    def copies(self) -> bool:
        """Whether a prompt that is selected twice makes two groups."""
        return self.selector is not None and self.selector.copies

    @property
    def done(self) -> bool:
        """Whether the selector is at its end."""
        return self.selector is not None and self.selector.done

    def choose(self, beliefs: PriorSource, count: int, rng: np.random.Generator, further: bool) -> Prompts | None:
        """The prompts of a round, None for those of TRL's sampler; no ids for an idle round."""
        if self.selector is not None and not (self.selector.done and further):
            places = self.selector.select(self._pool, beliefs, count, rng)
        elif further:
            places = self.spare.select(self._pool, beliefs, count, rng)
        else:
            return None
        assert self._data is not None
        ids = tuple(self._pool[place] for place in places.tolist())
        rows = {
            self._pool[place]: {key: value for key, value in self._data[place].items() if key != INDEX}
            for place in sorted(set(places.tolist()))
        }
        return Prompts(ids, rows)

    def observe(self, record: StepRecord | None) -> None:
        """Take in a round; None for one in which nothing was generated.

        Raises:
            RollwiseError: after too many rounds in a row without an update.
        """
        if self.selector is not None and record is not None:
            self.selector.observe(record)
        self.idle = self.idle + 1 if record is None or record.idle else 0
        if self.idle >= MOST_IDLE:
            raise RollwiseError(
                f"curators: {MOST_IDLE} rounds in a row left nothing to train; prompts are too hard or too easy"
            )

    def metrics(self) -> dict[str, float]:
        """Numbers of the selector; those of the curators stand in the step's record."""
        return self.selector.metrics() if self.selector is not None else {}

    def parts(self) -> dict[str, Any]:
        """What carries state from round to round, by name."""
        named: dict[str, Any] = {f"curator {curator.name}": curator for curator in self.curators}
        return named | {"spare": self.spare} | ({"selector": self.selector} if self.selector else {})


def count_blocks(args: RollwiseGRPOConfig, rows: int, prompts: int) -> int:
    """Generation blocks of the whole run: by `max_steps`, else by passes over the data."""
    every = args.steps_per_generation * args.num_iterations
    if args.max_steps > 0:
        return max(1, -(-args.max_steps * args.gradient_accumulation_steps // every))
    return max(1, int(args.num_train_epochs * (rows // prompts)))


def summary(levers: Levers) -> Sequence[str]:
    """Lines for the start, none where neither lever is used."""
    if levers.selector is None and not levers.curators:
        return []
    selector = levers.selector.name if levers.selector else "TRL's sampler"
    curators = ", ".join(curator.name for curator in levers.curators) or "none"
    passes = " | one more forward pass for log-probabilities" if levers.needs else ""
    return [
        f"rollwise: prompts by {selector} | curators {curators}{passes}",
        *(f"rollwise: warning: {line}" for line in levers.warnings),
    ]
