"""OptPO (arXiv 2512.02882): draw answers until one leads the vote beyond doubt. Needs no ground truth.

    Lambda = (p0 / p1)^(v_L - v_S) >= (1 - eps) / eps     <=>     v_L - v_S >= ln((1-eps)/eps) / ln(p0/p1)

v_L, v_S the votes of the leading and the second answer; p0, p1 the chances of the right and of one wrong answer.
"""

from __future__ import annotations

import math

import numpy as np

from rollwise.allocators.stages import check_size, fit_wave, opening
from rollwise.types import IntArray, RollwiseError, StepView


class OptPo:
    """`increment` rollouts at a time for every prompt whose vote is open, up to `most`. Saves the rest.

    Votes are counted by the step from `Rollout.answer`; a rollout without an answer is paid for and votes for nothing. The
    leader becomes the label of its prompt where the step is opened with `labels="majority"`. p0, p1, eps and the sizes are
    not in the paper's readable parts; those here give a margin of 3 votes.

    Args:
        right, wrong: p0 and p1.
        error: eps, the chance of a wrong leader to stop at.
        increment: rollouts per prompt and decision.
        most: M, most rollouts per prompt.

    Raises:
        RollwiseError: chances that are not 0 < p1 < p0 < 1, eps outside (0, 1/2), a size below 1.
    """

    name = "optpo"
    saves = True
    needs = frozenset({"answer"})

    def __init__(
        self,
        right: float = 0.6,
        wrong: float = 0.2,
        error: float = 0.05,
        increment: int = 4,
        most: int = 64,
    ) -> None:
        if not 0 < wrong < right < 1:
            raise RollwiseError(
                f"optpo: right {right}, wrong {wrong}; give 0 < wrong < right < 1, such as 0.6 and 0.2"
            )
        if not 0 < error < 0.5:
            raise RollwiseError(f"optpo: error {error} is out of range; give a chance below 0.5, such as 0.05")
        check_size(self.name, "increment", increment)
        check_size(self.name, "most", most)
        self.increment = increment
        self.most = most
        # The small term keeps a ratio that is whole in exact arithmetic whole.
        self.margin = max(1, math.ceil(math.log((1 - error) / error) / math.log(right / wrong) - 1e-9))

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now; all 0 once every vote is decided. `rng` is not used."""
        lead = np.zeros(view.size, dtype=np.int64) if view.votes is None else view.votes[:, 0] - view.votes[:, 1]
        left = np.clip(self.most - view.paid, 0, self.increment)
        return fit_wave(view, np.maximum(np.where(lead < self.margin, left, 0), opening(view, 0)))

    def metrics(self) -> dict[str, float]:
        """The margin that decides a vote."""
        return {"optpo_margin": float(self.margin)}
