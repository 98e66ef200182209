"""CERO (arXiv 2606.05606): prompts are chosen across epochs by the dual prices of what their rollouts are still worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rollwise.beliefs import PriorSource
from rollwise.selectors.dual import DualPacing
from rollwise.selectors.passes import check_pool
from rollwise.types import IntArray, RollwiseError, StepRecord

PACE = 64_000 / 66_000
"""Budget over what K full rounds would cost, as published: B = 64,000 units for K = 500 rounds of C = 132."""


class CERO:
    """Chooses whom to visit and when; each visit is one group of the usual size.

    The run has `steps` full steps' worth of rollouts and `round(steps / pace)` rounds to spend them in: a round whose
    price is too high is idle. A prompt and round take at most `per_prompt` units, a step of n prompts C = n * per_prompt.
    A budget that ends inside a group leaves that group out; what is left of the budget after the last round stays unspent.

    Args:
        steps: full steps the budget pays for; the run's length.
        per_prompt: N_max, units that make one group.
        pace: budget over what all rounds could take.
        rounds, units: K and B in place of what `steps` says, for the published numbers.
        curvature, discount: lam and rho.
        seed: of the order of the first pass.

    Raises:
        RollwiseError: naming the setting that is out of range; from `select`, a pool that changed.
    """

    name = "cero"
    needs: frozenset[str] = frozenset()
    copies = False

    def __init__(
        self,
        steps: int = 0,
        per_prompt: int = 2,
        pace: float = PACE,
        rounds: int | None = None,
        units: int | None = None,
        curvature: float = 1.0,
        discount: float = 1.0,
        seed: int = 0,
    ) -> None:
        if steps < 1 and (rounds is None or units is None):
            raise RollwiseError("cero steps: the algorithm plans ahead; give the number of steps, such as 500")
        if not 0 < pace <= 1:
            raise RollwiseError(f"cero pace: {pace} is out of range; give a number above 0 and up to 1, such as 0.97")
        DualPacing(1, 1, 1, 1, per_prompt, curvature, discount)
        self.rounds = rounds or max(1, round(steps / pace))
        self.steps, self.per_prompt, self.units = steps, per_prompt, units
        self.curvature, self.discount, self.seed = curvature, discount, seed
        self.pacing: DualPacing | None = None
        self._chosen: dict[str, int] = {}
        self._open = 0
        self._idle = 0

    @property
    def done(self) -> bool:
        """Whether the budget or the rounds are over."""
        return self.pacing is not None and self.pacing.done

    def select(self, pool: Sequence[str], beliefs: PriorSource, n: int, rng: np.random.Generator) -> IntArray:
        """Places in order of price; empty where no prompt's price exceeds the budget's, or all is spent."""
        pacing = self._start(pool, n)
        if pacing.done:
            return np.zeros(0, dtype=np.int64)
        units = pacing.propose()
        whole = np.flatnonzero(units == self.per_prompt)
        if not len(whole):
            # the rounds' prices move all the same; a remainder too small for a group is given up
            pacing.learn(whole, whole, whole, int(units.sum()))
            self._idle += 1
            return whole
        self._open = int(units.sum())
        ranked = whole[np.argsort(-pacing.theta[whole], kind="stable")]
        self._chosen = {str(pool[place]): int(place) for place in reversed(ranked)}
        return ranked

    def observe(self, record: StepRecord) -> None:
        """End the round: beliefs of the prompts visited, prices of all."""
        if self.pacing is not None and self._open:
            seen = [(slot, self._chosen[key]) for slot, key in enumerate(record.prompt_ids) if key in self._chosen]
            slots, places = np.array(seen, dtype=np.int64).reshape(-1, 2).T
            self.pacing.learn(places, record.successes[slots], record.failures[slots], self._open)
            self._open, self._chosen = 0, {}

    def metrics(self) -> dict[str, float]:
        """`nu` and the best theta, rounds and idle rounds so far, share of the budget spent."""
        pacing = self.pacing
        if pacing is None:
            return {}
        return {
            "cero_nu": pacing.nu,
            "cero_theta_max": float(pacing.theta.max()),
            "cero_round": float(pacing.round),
            "cero_idle": float(self._idle),
            "cero_spent": pacing.spent / pacing.budget,
        }

    def state_dict(self) -> dict[str, Any]:
        pacing = self.pacing
        plan = None if pacing is None else [len(pacing.theta), pacing.budget, pacing.capacity]
        return {
            "plan": plan,
            "pacing": None if pacing is None else pacing.state_dict(),
            "chosen": dict(self._chosen),
            "open": self._open,
            "idle": self._idle,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.pacing = None
        if state["plan"] is not None:
            self.pacing = self._plan(*(int(number) for number in state["plan"]))
            self.pacing.load_state_dict(state["pacing"])
        self._chosen = {key: int(place) for key, place in state["chosen"].items()}
        self._open, self._idle = int(state["open"]), int(state["idle"])

    def _plan(self, prompts: int, budget: int, capacity: int) -> DualPacing:
        return DualPacing(
            prompts, self.rounds, budget, capacity, self.per_prompt, self.curvature, self.discount, self.seed
        )

    def _start(self, pool: Sequence[str], n: int) -> DualPacing:
        check_pool(pool, n)
        if self.pacing is None:
            capacity = n * self.per_prompt
            self.pacing = self._plan(len(pool), self.steps * capacity if self.units is None else self.units, capacity)
        if len(self.pacing.theta) != len(pool):
            raise RollwiseError(f"cero: the data set had {len(self.pacing.theta)} prompts and now has {len(pool)}")
        return self.pacing
