"""AdaRoll-GRPO (arXiv 2610.37429): spend the step's budget by the optimum of a utility of the final counts.

next = argmax_i  mu_i V(x + success_i) + (1 - mu_i) V(x + failure_i),     V from `rollwise.solver`

exactly where a table fits; on larger steps, and where prompts have priors of their own, by the price decomposition.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

import numpy as np

from rollwise.allocators.base import room, wave_size
from rollwise.allocators.blocks import split_budget, split_slots, total_by_block
from rollwise.allocators.priced import check_reach, plan_view, serve_next, size_of_wave
from rollwise.solver.closed import closed_rule, fill_closed
from rollwise.solver.minimum import stand_in
from rollwise.solver.states import count_states
from rollwise.solver.tables import cached_solve
from rollwise.types import FloatArray, IntArray, RollwiseError, StepView
from rollwise.utilities import Utility, get_utility, max_reward

STATE_LIMIT = 6_000_000
"""Largest table solved inside training: B=5, N=40 where success and failure may be swapped, else B=4, N=32."""


class AdaRoll:
    """Optimal allocation of a step, one rollout at a time or in waves.

    How a step is decided, first match:

    * `min_squared_advantage`, `min_max_reward`, and `sum_max_reward` one rollout at a time: their closed-form rules, on
      the whole step (`solver.closed`);
    * one shared prior and a table of at most `STATE_LIMIT` states, or `block_prompts` set: exact tables, one for the step
      or one per block of consecutive slots with a proportional part of the budget (`solver.exact`, `solver.fill`);
    * else the price decomposition, any prior per prompt (`solver.plan`); a minimum is played through its soft stand-in
      (`solver.minimum`). Decisions then depend on the whole step, and no prompt is planned beyond 64 more rollouts
      (four times the average share where that is more).

    The first decision gives every prompt its `n_min`. How large a wave is, the plan says: what the waves left make best,
    rounded to the quantum (several blocks use even waves, `wave_size`). The last wave spends what is left. An
    unknown outcome is paid for and teaches nothing. Ties go to the prompt with fewest rollouts, then the lowest slot.

    Args:
        utility: a name of `rollwise.utilities.UTILITIES` or a `Utility`.
        advantage_form: "raw" or "normalised", for the squared-advantage utilities.
        sequential: one rollout per decision (per block, or per process), whatever `waves_left` says: faithful to the
            paper, and slow. Large steps follow the index policy (`solver.prices`).
        block_prompts: most prompts in one block with an exact table each; None decides the step as a whole.
        token_budget: tokens a step may cost, beside its rollouts, by `expected_cost` of the view. What is not worth its
            tokens is then saved. Sum-type utilities and `min_variance` only.

    Raises:
        RollwiseError: from `next_wave`, naming `block_prompts` (prior unequal in the step), `n_min`, `n_max`,
            `sequential`, or a budget beyond `priced.MOST_PER_PROMPT` rollouts a prompt.
    """

    name = "adaroll"
    saves = False

    def __init__(
        self,
        utility: str | Utility = "min_variance",
        advantage_form: str = "raw",
        sequential: bool = False,
        block_prompts: int | None = None,
        token_budget: float | None = None,
    ) -> None:
        if block_prompts is not None and block_prompts < 1:
            raise RollwiseError(f"block_prompts {block_prompts} is out of range: at least 1, or None for one block")
        if token_budget is not None and not 0 < token_budget < float("inf"):
            raise RollwiseError(f"token_budget {token_budget} is out of range: tokens above 0, or None for no limit")
        self.utility = get_utility(utility, advantage_form)
        self.sequential = sequential
        self.block_prompts = block_prompts
        self.token_budget = token_budget
        self.saves = token_budget is not None
        self._rule = closed_rule(self.utility)
        # In waves the closed rule of this sum is a heuristic, and its price plan is not.
        self._in_waves_priced = self.utility.kind == "sum" and self.utility.term is max_reward

    def blocks(self, view: StepView) -> tuple[slice, ...]:
        """The consecutive slots that are decided together; a single slice where the step is decided as a whole."""
        if self.block_prompts is None or self._rule is not None:
            return (slice(0, view.size),)
        return split_slots(view.size, self.block_prompts)

    def next_wave(self, view: StepView, rng: np.random.Generator) -> IntArray:
        """(B,) rollouts to start now; see the class for the rule. `rng` is not used."""
        need, space = np.maximum(view.n_min - view.paid, 0), room(view)
        check_bounds(view, need, space)
        if view.budget_left == 0:
            return np.zeros(view.size, dtype=np.int64)
        if not (self.sequential and self._rule is not None):
            check_reach(view, need, space)
        if self.token_budget is not None:
            return plan_view(stand_in(self.utility), view, need, space, self.token_budget)
        if self._rule is not None and (self.sequential or not self._in_waves_priced):
            return self._follow_rule(view, need, space)
        if (self.block_prompts is not None and self._rule is None) or self._fits_table(view):
            return self._use_tables(view, need, space)
        if self.sequential and not need.any():
            return serve_next(stand_in(self.utility), view, space)
        return plan_view(stand_in(self.utility), view, need, space)

    def metrics(self) -> dict[str, float]:
        """Nothing: all there is to know is in the step's counts."""
        return {}

    def _follow_rule(self, view: StepView, need: IntArray, space: IntArray) -> IntArray:
        assert self._rule is not None
        share = int(self._share(view, need, space) - need.sum())
        columns = (view.successes, view.failures, view.pending + need, space - need, view.paid + need)
        left = int(view.budget_left - need.sum())
        return need + fill_closed(self._rule, view.prior_a, view.prior_b, *columns, share, left)

    def _fits_table(self, view: StepView) -> bool:
        if not (_is_shared(view.prior_a) and _is_shared(view.prior_b)):
            return False
        cap = int(min(view.budget, view.n_max.max()))
        if not _is_small(view.size, view.budget, cap, True):
            return False
        folded = view.prior_a[0] == view.prior_b[0] and _is_symmetric(self.utility, cap)
        return _is_small(view.size, view.budget, cap, bool(folded))

    def _use_tables(self, view: StepView, need: IntArray, space: IntArray) -> IntArray:
        prior = _shared_prior(view)
        blocks = self.blocks(view)
        paid, owed = total_by_block(view.paid, blocks), total_by_block(need, blocks)
        sizes = np.array([block.stop - block.start for block in blocks])
        budgets = split_budget(view.budget, sizes, paid + owed, paid + total_by_block(space, blocks))
        if len(blocks) > 1:
            shares = self._even(view, budgets - paid, owed)
        else:
            shares = np.array([self._share(view, need, space)])
        return need + self._fill_blocks(view, prior, need, space, blocks, budgets, shares - owed)

    def _share(self, view: StepView, need: IntArray, space: IntArray) -> int:
        """Rollouts of this wave where the step is decided as a whole: as the price plan has it; `need` is part of it."""
        if self.sequential or view.waves_left <= 1 or wave_size(view) <= view.quantum:
            return int(self._even(view, np.array([view.budget_left]), need.sum(keepdims=True))[0])
        return size_of_wave(stand_in(self.utility), view, need, space)

    def _even(self, view: StepView, left: IntArray, owed: IntArray) -> IntArray:
        """(K,) rollouts each block gets in an even wave; what is owed to `n_min` is part of it."""
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
def _is_small(prompts: int, budget: int, cap: int, folded: bool) -> bool:
    # Beyond 16 prompts only budgets below one rollout each would fit, and counting itself takes long.
    return prompts <= 16 and count_states(prompts, budget, cap, folded, STATE_LIMIT) <= STATE_LIMIT


def _shared_prior(view: StepView) -> tuple[float, float]:
    if not (_is_shared(view.prior_a) and _is_shared(view.prior_b)):
        raise RollwiseError(
            "block_prompts needs one prior for all prompts of the step: leave it None, which takes any prior per prompt"
        )
    return float(view.prior_a[0]), float(view.prior_b[0])


def _is_shared(values: FloatArray) -> bool:
    return bool((values == values[0]).all())


def check_bounds(view: StepView, need: IntArray, space: IntArray) -> None:
    """Raise RollwiseError where `need` (B,) exceeds the budget or the caps, or `space` (B,) is below the budget."""
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
