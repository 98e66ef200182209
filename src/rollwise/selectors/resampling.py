"""CoDaPO's two phases (arXiv 2606.07950): every other step repeats the last one's most valuable prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rollwise.beliefs import PriorSource
from rollwise.curators.confidence import OFFSET, group_value
from rollwise.curators.rows import rows_by_group
from rollwise.selectors.passes import Passes, check_pool
from rollwise.types import IntArray, RollwiseError, StepRecord


class Resampling:
    """Even steps take the next prompts of shuffled passes; odd ones repeat the `top` share of them, `repeats` times each.

    A prompt's weight is `v + offset` of its group (`curators.confidence.group_value`). Every copy is a group of its own
    with fresh rollouts, so a prompt of chance p is solved with `1 - (1-p)^(n repeats)`. The odd step is cut to its usual
    size, and filled up by going round again.

    Args:
        top: share of a step's prompts that are repeated.
        repeats: copies of each; None for as many as fill the step.
        rule: `top`, exactly the top share, first of equals first; or `quantile`, all at or above that quantile.
        offset: of the weights.
        seed: of the passes.
    """

    name = "resampling"
    needs = frozenset({"logprob"})
    copies = True
    done = False

    def __init__(
        self,
        top: float = 0.25,
        repeats: int | None = 4,
        rule: Literal["top", "quantile"] = "top",
        offset: float = OFFSET,
        seed: int = 0,
    ) -> None:
        if not 0 < top <= 1:
            raise RollwiseError(
                f"resampling top: {top} is out of range; give a share above 0 and up to 1, such as 0.25"
            )
        if repeats is not None and repeats < 1:
            raise RollwiseError(f"resampling repeats: {repeats}; give 1 or more, such as 4")
        if rule not in ("top", "quantile"):
            raise RollwiseError(f"resampling rule: no {rule!r}; valid: quantile, top")
        self.top, self.repeats, self.rule, self.offset = top, repeats, rule, offset
        self._passes = Passes(seed)
        self._places: dict[str, int] = {}
        self._focus: list[int] = []
        self._focused = False

    def select(self, pool: Sequence[str], beliefs: PriorSource, n: int, rng: np.random.Generator) -> IntArray:
        """The next n prompts, or n copies of the chosen ones."""
        check_pool(pool, n)
        self._focused = bool(self._focus)
        if not self._focused:
            chosen = self._passes.draw(len(pool), n)
            self._places = {str(pool[place]): int(place) for place in chosen}
            return chosen
        once = np.repeat(self._focus, self.repeats or -(-n // len(self._focus)))
        return np.resize(once, n)

    def observe(self, record: StepRecord) -> None:
        """After an even step, choose what the odd one repeats."""
        if self._focused:
            self._focus = []
            return
        weights: dict[int, float] = {}
        for places in rows_by_group(record).values():
            place = self._places.get(record.rollouts[places[0]].prompt_id)
            if place is not None:
                weights[place] = group_value(record, places) + self.offset
        values = np.array(list(weights.values()))
        if self.rule == "quantile" and len(values):
            best = np.flatnonzero(values >= np.quantile(values, 1 - self.top))
        else:
            best = np.sort(np.argsort(-values, kind="stable")[: max(1, round(self.top * len(values)))])
        found = list(weights)
        self._focus = [found[k] for k in best]

    def metrics(self) -> dict[str, float]:
        """Whether the step repeats, and how many prompts."""
        return {"resampled": float(self._focused), "resampling_prompts": float(len(self._focus))}

    def state_dict(self) -> dict[str, Any]:
        return {
            "passes": self._passes.state_dict(),
            "places": dict(self._places),
            "focus": list(self._focus),
            "focused": self._focused,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._passes.load_state_dict(state["passes"])
        self._places = {key: int(place) for key, place in state["places"].items()}
        self._focus = [int(place) for place in state["focus"]]
        self._focused = bool(state["focused"])
