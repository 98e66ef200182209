"""The selector contract: which prompts of the data set enter the next step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rollwise.beliefs import PriorSource
from rollwise.types import IntArray, StepRecord


@runtime_checkable
class Selector(Protocol):
    """Chooses the prompts of a step. Keeps state between steps; deterministic, given it and the generator.

    Calls alternate: `select`, then `observe` with the closed step, unless nothing was selected. `needs` names what the
    trainer must put into rollouts (see `rollwise.curators.base.NEEDS`). A prompt selected several times gets one group
    with the rollouts of all its copies, or, where `copies` is true, a group of its own for each.
    """

    name: str
    needs: frozenset[str]
    copies: bool

    @property
    def done(self) -> bool:
        """True once every later selection would be empty, so that the run ends."""
        ...

    def select(self, pool: Sequence[str], beliefs: PriorSource, n: int, rng: np.random.Generator) -> IntArray:
        """Places in the pool of at most `n` prompts, in order; empty for an idle round, in which nothing is generated.

        Args:
            pool: ids of all M prompts, the same in every call; a place is a row number of the data set.
            beliefs: what the run believes of each prompt (`for_step(ids)` gives (K, 2)).
            n: B, the prompts a full step takes.
        """
        ...

    def observe(self, record: StepRecord) -> None:
        """Take in the step made of the prompts selected last."""
        ...

    def metrics(self) -> dict[str, float]:
        """Numbers worth logging about the rule itself; may be empty."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that later selections depend on, as JSON-able data or arrays."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; the same selections follow."""
        ...
