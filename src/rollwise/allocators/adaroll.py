"""AdaRoll-GRPO (arXiv 2610.37429): spend the step's budget by the exact optimum of a utility of the final counts.

next = argmax_i  mu_i V(x + success_i) + (1 - mu_i) V(x + failure_i),     V from `rollwise.solver`
"""

from __future__ import annotations

import logging
from collections import defaultdict
from functools import lru_cache

import numpy as np

from rollwise.allocators.base import room, wave_size
from rollwise.allocators.blocks import split_budget, split_slots, total_by_block
from rollwise.solver.closed import closed_rule, fill_closed
from rollwise.solver.states import count_states
from rollwise.solver.tables import cached_solve
from rollwise.types import FloatArray, IntArray, RollwiseError, StepView
from rollwise.utilities import Utility, get_utility

logger = logging.getLogger("rollwise")

STATE_LIMIT = 6_000_000
"""Largest table solved inside training: B=5, N=40 where success and failure may be swapped, else B=4, N=32."""

BLOCK_PROMPTS = 4
"""Prompts per block where the whole step is too large for one table."""


class AdaRoll:
    """Exact allocation of a step, one rollout at a time or in waves.

    `min_squared_advantage`, `sum_max_reward` and `min_max_reward` follow their closed-form optimum on the whole step.
    Other utilities use one exact table where it has at most `STATE_LIMIT` states; a larger step is cut into blocks of
    consecutive slots with a table and a proportional part of the budget each, and all blocks advance in every wave.

    The first decision gives every prompt its `n_min`. A wave is sized by `wave_size`, shared over blocks in proportion
    to what they have left, and filled by the value expected once everything running is back (`solver.fill`; for the
    closed forms `solver.closed`). An unknown outcome is paid for and teaches nothing, so the block goes on with the
    table of a budget smaller by one. Ties go to the prompt with fewest rollouts, then the lowest slot.

    Args:
        utility: a name of `rollwise.utilities.UTILITIES` or a `Utility`.
        advantage_form: "raw" or "normalised", for the squared-advantage utilities.
        sequential: one rollout per block and decision, whatever `waves_left` says: faithful to the paper, and slow.
        block_prompts: most prompts in one block; None for one block where feasible, else 4.

    Raises:
        RollwiseError: from `next_wave`, naming `prior` (unequal within the step), `n_min`, `n_max` or `sequential`.
    """

    name = "adaroll"
    saves = False

    def __init__(
        self,
        utility: str | Utility = "min_variance",
        advantage_form: str = "raw",
        sequential: bool = False,
        block_prompts: int | None = None,
    ) -> None:
        if block_prompts is not None and block_prompts < 1:
            raise RollwiseError(f"block_prompts {block_prompts} is out of range: at least 1, or None to choose")
        self.utility = get_utility(utility, advantage_form)
        self.sequential = sequential
        self.block_prompts = block_prompts
        self._rule = closed_rule(self.utility)
        self._told = False

    def blocks(self, view: StepView) -> tuple[slice, ...]:
        """The consecutive slots that share a table; a single slice where the step is decided as a whole."""
        if self._rule is not None or view.size <= 1:
            return (slice(0, view.size),)
        cap = int(min(view.budget, view.n_max.max()))
        a, b = _shared_prior(view)
        folded = a == b and _is_symmetric(self.utility, cap)
        most = _block_size(view.size, view.budget, cap, folded, self.block_prompts)
        blocks = split_slots(view.size, most)
        if len(blocks) > 1 and not self._told:
            self._told = True
            logger.warning(
                "adaroll: %d prompts, budget %d are decided in %d blocks of at most %d prompts, an exact table each",
                view.size,
                view.budget,
                len(blocks),
                most,
            )
        return blocks

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now; see the class for the rule. `rng` is not used."""
        prior = _shared_prior(view)
        need, space = np.maximum(view.n_min - view.paid, 0), room(view)
        _check_bounds(view, need, space)
        if view.budget_left == 0:
            return np.zeros(view.size, dtype=np.int64)
        blocks = self.blocks(view)
        paid, owed = total_by_block(view.paid, blocks), total_by_block(need, blocks)
        sizes = np.array([block.stop - block.start for block in blocks])
        budgets = split_budget(view.budget, sizes, paid + owed, paid + total_by_block(space, blocks))
        shares = self._share(view, budgets - paid, owed)
        if self._rule is None:
            return need + self._fill_blocks(view, prior, need, space, blocks, budgets, shares - owed)
        columns = (view.successes, view.failures, view.pending + need, space - need, view.paid + need)
        wave, left = int(shares[0] - owed[0]), int(view.budget_left - owed[0])
        return need + fill_closed(self._rule, prior, *columns, wave, left)

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}

    def _share(self, view: StepView, left: IntArray, owed: IntArray) -> IntArray:
        """(K,) rollouts each block gets in this wave; what is owed to `n_min` is part of it."""
        least = owed
        if self.sequential:
            if left.size % view.quantum:
                raise RollwiseError(
                    f"sequential hands out one rollout per block, {left.size} at a time, which world size "
                    f"{view.quantum} does not divide: use sequential=False, or blocks in a multiple of {view.quantum}"
                )
            if not owed.any():
                least = np.minimum(left, 1)
            size = int(least.sum())
        else:
            size = max(wave_size(view), int(owed.sum()))
        size = min(-(-size // view.quantum) * view.quantum, view.budget_left)
        return split_budget(size, left, least, left)

    def _fill_blocks(
        self,
        view: StepView,
        prior: tuple[float, float],
        need: IntArray,
        space: IntArray,
        blocks: tuple[slice, ...],
        budgets: IntArray,
        shares: IntArray,
    ) -> IntArray:
        running, known = view.pending + need, view.successes + view.failures
        alike: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for j, block in enumerate(blocks):
            if shares[j] > 0:
                horizon = int(budgets[j] - view.unknown[block].sum())
                cap = max(int(view.n_max[block].max()), int((known + running)[block].max()))
                alike[block.stop - block.start, horizon, min(cap, horizon)].append(j)
        given = np.zeros(view.size, dtype=np.int64)
        for (prompts, horizon, cap), members in alike.items():
            slots = np.stack([np.arange(blocks[j].start, blocks[j].stop) for j in members])
            given[slots] = cached_solve(self.utility, prompts, horizon, prior, cap).fill(
                view.successes[slots],
                view.failures[slots],
                running[slots],
                shares[members],
                room=(space - need)[slots],
                paid=(view.paid + need)[slots],
            )
        return given


@lru_cache(maxsize=64)
def _is_symmetric(utility: Utility, cap: int) -> bool:
    table = utility.table(cap if utility.n_limit is None else min(cap, utility.n_limit))
    return np.array_equal(table, table.T)


@lru_cache(maxsize=256)
def _block_size(prompts: int, budget: int, cap: int, folded: bool, wanted: int | None) -> int:
    if wanted is not None:
        return wanted
    for most in (prompts, *range(min(BLOCK_PROMPTS, prompts), 1, -1)):
        part = -(-prompts // -(-prompts // most))
        # Beyond 16 prompts only budgets below one rollout each would fit, and counting itself takes long.
        if part <= 16 and count_states(part, -(-budget * part // prompts), cap, folded, STATE_LIMIT) <= STATE_LIMIT:
            return most
    return 1


def _shared_prior(view: StepView) -> tuple[float, float]:
    a, b = _only(view.prior_a), _only(view.prior_b)
    if a is None or b is None:
        raise RollwiseError(
            "prior differs between the prompts of the step: adaroll needs one shared prior such as (1.0, 1.0)"
        )
    return a, b


def _only(values: FloatArray) -> float | None:
    return float(values[0]) if (values == values[0]).all() else None


def _check_bounds(view: StepView, need: IntArray, space: IntArray) -> None:
    if need.sum() > view.budget_left:
        raise RollwiseError(
            f"n_min asks for {need.sum()} rollouts and {view.budget_left} are left: lower n_min to at most "
            f"{view.budget // view.size}"
        )
    if (need > np.maximum(view.n_max - view.paid, 0)).any():
        raise RollwiseError(
            f"n_max {view.n_max.min()} is below n_min {view.n_min.max()}: raise n_max to n_min or more"
        )
    if space.sum() < view.budget_left:
        raise RollwiseError(
            f"n_max leaves room for {space.sum()} of {view.budget_left} rollouts: raise n_max to at least "
            f"{-(-view.budget // view.size)}"
        )
