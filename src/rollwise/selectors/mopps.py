"""MoPPS (arXiv 2507.04632): prompts whose success rate, drawn from their beliefs, lies nearest to one half."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rollwise.beliefs import FLAT, BeliefStore, PriorSource
from rollwise.selectors.passes import Passes, check_pool
from rollwise.types import IntArray, RollwiseError, StepRecord


class MoPPS:
    """Thompson sampling: of the candidates, the n with |p - target| smallest, p ~ Beta(a, b).

        a <- lam a + (1 - lam) a0 + s,     b <- lam b + (1 - lam) b0 + f     after a visit

    Beliefs are its own and not the run's, since they fade by `discount` and the allocator's may be fixed.

    Args:
        candidates: drawn per prompt selected, from shuffled passes; None for the whole data set.
        discount: lam.
        target: the rate to be near to.
        prior: Beta(a0, b0).
        seed: of the passes.
    """

    name = "mopps"
    needs: frozenset[str] = frozenset()
    copies = False
    done = False

    def __init__(
        self,
        candidates: float | None = None,
        discount: float = 1.0,
        target: float = 0.5,
        prior: tuple[float, float] = FLAT,
        seed: int = 0,
    ) -> None:
        if candidates is not None and candidates < 1:
            raise RollwiseError(f"mopps candidates: {candidates} per prompt; give 1 or more, or none for all prompts")
        if not 0 <= target <= 1:
            raise RollwiseError(f"mopps target: {target} is no success rate; give one from 0 to 1, such as 0.5")
        self.candidates, self.target = candidates, target
        self.store = BeliefStore(prior, discount)
        self._passes = Passes(seed)
        self._distance = 0.0

    def select(self, pool: Sequence[str], beliefs: PriorSource, n: int, rng: np.random.Generator) -> IntArray:
        """Places of the n candidates nearest to the target, nearest first."""
        check_pool(pool, n)
        if self.candidates is None:
            offered = np.arange(len(pool))
        else:
            offered = self._passes.draw(len(pool), min(len(pool), max(n, round(self.candidates * n))))
        a, b = self.store.prior([pool[place] for place in offered.tolist()]).T
        distance = np.abs(rng.beta(a, b) - self.target)
        nearest = np.argsort(distance, kind="stable")[:n]
        self._distance = float(distance[nearest].mean())
        return offered[nearest]

    def observe(self, record: StepRecord) -> None:
        """Fade and add the counts of the prompts visited."""
        self.store.update(record.prompt_ids, record.successes, record.failures)

    def metrics(self) -> dict[str, float]:
        return {"mopps_distance": self._distance, "mopps_known": float(len(self.store))}

    def state_dict(self) -> dict[str, Any]:
        return {"beliefs": self.store.state_dict(), "passes": self._passes.state_dict(), "distance": self._distance}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.store.load_state_dict(state["beliefs"])
        self._passes.load_state_dict(state["passes"])
        self._distance = float(state["distance"])
