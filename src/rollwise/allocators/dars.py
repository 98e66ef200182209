"""DARS (arXiv 2508.13755): after a first group, prompts below half get what lifts their group's weight to that of p = 1/2.

S = 2 acc (1 - acc)  (1 / (2n) at acc = 0),     ET: (n/2 - n S) / S,     HW: (2 (1 - acc) n/2 - n S) / S  more rollouts
"""

from __future__ import annotations

import numpy as np

from rollwise.allocators.blocks import split_budget
from rollwise.allocators.stages import check_size, first_round, fit_wave, opening
from rollwise.suggest import nearest
from rollwise.types import FloatArray, IntArray, RollwiseError, StepView

FORMS = ("et", "hw")
CAPS = {"et": 32, "hw": 64}


class Dars:
    """`first` rollouts each, then one further wave to prompts whose accuracy is below 1/2. Saves the rest.

    Where the budget is short of what all of them should get, it is shared in proportion. Unknown outcomes are left out of
    n and acc; a prompt of which nothing is known gets nothing more.

    Args:
        form: "et" (equal treatment) or "hw" (hardness weighted: twice the hardness on top).
        first: n, rollouts per prompt at first; None for 8, at most half the average share.
        most: most rollouts per prompt; None for 4 (`et`) or 8 (`hw`) times `first`, as published (32, 64 of 8).
        root: weigh by S = 2 sqrt(acc (1-acc)), whose peak is n, instead.

    Raises:
        RollwiseError: an unknown form, a size below 1.
    """

    name = "dars"
    saves = True

    def __init__(
        self, form: str = "et", first: int | None = None, most: int | None = None, root: bool = False
    ) -> None:
        if form not in FORMS:
            raise RollwiseError(f"{self.name}: no form {form!r}; {nearest(str(form), FORMS)}")
        check_size(self.name, "first", first)
        check_size(self.name, "most", most, first or 1)
        self.form = form
        self.first = first
        self.most = most
        self.root = root

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now; all 0 after the further wave. `rng` is not used."""
        first = self.first or first_round(view, 8)
        missing = opening(view, first)
        if missing.any():
            return fit_wave(view, missing)
        opened = int(np.minimum(np.maximum(view.n_min, first), view.n_max).sum())
        if view.paid.sum() > -(-opened // view.quantum) * view.quantum:
            return np.zeros(view.size, dtype=np.int64)
        known = view.successes + view.failures
        more = further_rollouts(view.successes, known, self.form, self.root)
        most = self.most or CAPS[self.form] // 8 * first
        wanted = np.clip(np.minimum(most, view.n_max) - view.paid, 0, more)
        if wanted.sum() > view.budget_left:
            wanted = split_budget(view.budget_left, wanted, np.zeros_like(wanted), wanted)
        return fit_wave(view, wanted)

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}


def further_rollouts(successes: IntArray, known: IntArray, form: str = "et", root: bool = False) -> IntArray:
    """(B,) further rollouts of prompts with these counts (B,), before any cap; 0 from acc = 1/2 on and where n = 0."""
    n = np.maximum(known, 1)
    acc = successes / n
    spread: FloatArray = np.where(successes == 0, 1 / (2 * n), acc * (1 - acc))
    share = 2 * np.sqrt(spread) if root else np.where(successes == 0, spread, 2 * spread)
    peak = n if root else n / 2
    target = peak if form == "et" else 2 * (1 - acc) * peak
    more = np.ceil(np.round((target - n * share) / np.maximum(share, 1e-12), 9))
    return np.where((known > 0) & (acc < 0.5), np.maximum(more, 0), 0).astype(np.int64)
