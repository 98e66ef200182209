"""One training step without a trainer: open, wave, observe, close.

    step = Step(prompt_ids, allocator, budget=64, waves=4, rng=rng)
    while wave := step.next_wave():
        for rollout in wave.rollouts:
            step.observe(rollout.result(outcome=grade(generate(rollout.prompt_id))))
    record = step.close()

The step owns the counts and the budget; allocators only see a view of it. It knows the contracts, no trainer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.advantages import Advantage, get_advantage
from rollwise.allocators.base import Allocator
from rollwise.beliefs import FLAT, check_priors
from rollwise.contract import check_costs, check_counts, check_result, check_step, rule_metrics
from rollwise.curation import weigh_rows
from rollwise.curators import Curator
from rollwise.groups import name_groups
from rollwise.ledger import Ledger
from rollwise.metrics import prompt_mean, step_metrics
from rollwise.objectives import get_objective, objective_weights
from rollwise.types import UNLIMITED, FloatArray, IntArray, Outcome, Rollout, RollwiseError, StepRecord, StepView, Wave
from rollwise.votes import check_labels, leading_votes, settle_labels
from rollwise.weighting import check_weighting

__all__ = ["Step", "Wave"]


class Step:
    """One step's budget over its prompts.

    Prompts that occur twice share one slot and one group. Outcomes may arrive in any order, repeatedly and late; what
    never arrives is closed as unknown. The same `rng` state, view and outcomes give the same decisions.
    """

    def __init__(
        self,
        prompt_ids: Sequence[str],
        allocator: Allocator,
        budget: int,
        *,
        rng: np.random.Generator,
        index: int = 0,
        waves: int = 4,
        quantum: int = 1,
        prior: tuple[float, float] | FloatArray = FLAT,
        n_min: int = 2,
        n_max: int | None = None,
        advantage: str | Advantage = "grpo",
        weighting: str = "per_rollout",
        objective: Any = "none",
        labels: str = "verifier",
        curators: Sequence[Curator] = (),
        copies: bool = False,
        expected_cost: ArrayLike | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        """Open a step.

        Args:
            prompt_ids: ids of the step's prompts; repeats are merged, in order of first occurrence, into B slots (and
                may take `n_max` rollouts per copy).
            allocator: the rule that spends the budget.
            budget: N, rollouts of the step; spent exactly unless `allocator.saves`.
            rng: generator for rules that draw; the only source of randomness.
            index: number of the step in its run; rollout ids start with it.
            waves: decisions to spend the budget in (rules in sequential mode take as many as they need).
            quantum: every wave is a multiple of it (the number of processes that generate).
            prior: the Beta belief at the opening, one pair or an array (B, 2).
            n_min: fewest rollouts per prompt; 0 is the published form of adaptive rules.
            n_max: most rollouts per prompt, None for no cap.
            advantage: estimator or its name.
            weighting: `per_rollout` or `per_prompt`.
            objective: what is ascended: `none` (as published), `mean`, `log`, `pass@k`, or a weight curve over p; its
                weights come from the beliefs at the opening and stay as they are.
            labels: where outcomes come from at the close: the `verifier`, or the `majority` of the answers a group gave.
            curators: rules for what trains, applied one after the other at the close.
            copies: whether a repeated prompt gets a slot and a group for each copy, instead of one for all.
            expected_cost: tokens a rollout is expected to take, one number, (B,) by prompt or (B, 2) by outcome
                (success, failure); B counts merged prompts. Only rules with a budget in tokens look at it.
            ledger: where every rollout is recorded; rollouts of this step that it already holds are not issued again.

        Raises:
            RollwiseError: if the settings cannot be met together.
        """
        asked = Counter(str(prompt_id) for prompt_id in prompt_ids)
        self.group_ids = name_groups([str(prompt_id) for prompt_id in prompt_ids]) if copies else tuple(asked)
        """One per slot; what its rollouts share a baseline under."""
        self.prompt_ids = tuple(str(prompt_id) for prompt_id in prompt_ids) if copies else tuple(asked)
        size = len(self.prompt_ids)
        cap = UNLIMITED if n_max is None else n_max
        check_step(asked.total(), budget, waves, quantum, n_min, cap)
        check_weighting(weighting)
        rule_metrics(allocator)
        check_labels(labels)
        self.index = index
        self.budget = int(budget)
        self._allocator = allocator
        self._rng = rng
        self._waves = waves
        self._quantum = quantum
        self._advantage = get_advantage(advantage)
        self._weighting = weighting
        self._labels = labels
        self._ledger = ledger
        self._prior = check_priors("prior", prior, size)
        self._costs = None if expected_cost is None else check_costs(expected_cost, size)
        plain = get_objective(objective).name in ("none", "mean")
        self._objective_weights = None if plain else objective_weights(objective, self._prior)
        self._n_min = np.full(size, n_min, dtype=np.int64)
        times = [1 if copies else asked[key] for key in self.prompt_ids]
        self._n_max = np.array([min(UNLIMITED, cap * count) for count in times], dtype=np.int64)
        self.slot_of = {group_id: slot for slot, group_id in enumerate(self.group_ids)}
        """Slot of each group."""
        self._curators = tuple(curators)
        self._counts = {outcome: np.zeros(size, dtype=np.int64) for outcome in Outcome}
        self._tokens = np.zeros(size, dtype=np.int64)
        self._ballots = [Counter[str]() for _ in range(size)]
        self._votes = np.zeros((size, 2), dtype=np.int64)
        self._norms = np.zeros((size, 2))
        self._issued: dict[str, Rollout] = {}
        self._observed: dict[str, Rollout] = {}
        self._paid = np.zeros(size, dtype=np.int64)
        self._wave = 0
        self._closed = False

    @property
    def view(self) -> StepView:
        """What the allocator sees now."""
        seen = sum(self._counts.values(), start=np.zeros_like(self._paid))
        return StepView(
            prompt_ids=self.prompt_ids,
            prior_a=self._prior[:, 0].copy(),
            prior_b=self._prior[:, 1].copy(),
            successes=self._counts[Outcome.SUCCESS].copy(),
            failures=self._counts[Outcome.FAILURE].copy(),
            unknown=self._counts[Outcome.UNKNOWN].copy(),
            pending=self._paid - seen,
            tokens_spent=self._tokens.copy(),
            expected_cost=self._expected_cost(),
            n_min=self._n_min.copy(),
            n_max=self._n_max.copy(),
            budget_left=self.budget - int(self._paid.sum()),
            waves_left=max(1, self._waves - self._wave),
            quantum=self._quantum,
            objective_weights=None if self._objective_weights is None else self._objective_weights.copy(),
            outcome_cost=None if self._costs is None else self._costs.copy(),
            votes=self._votes.copy() if self._votes.any() else None,
            gradient_norms=self._norms[:, 0] / np.maximum(self._norms[:, 1], 1) if self._norms.any() else None,
        )

    def next_wave(self) -> Wave | None:
        """Decide the next wave, or None once the budget is spent (or the rule stops saving the rest).

        A step whose ledger holds waves of it already plays them again, each from the outcomes known when it was decided.

        Raises:
            RollwiseError: if the allocator breaks its contract, or the ledger holds another decision; nothing is issued
                then.
        """
        view = self.view
        if self._closed or view.budget_left == 0:
            return None
        counts = check_counts(self._allocator, view, self._allocator.next_wave(view, self._rng))
        if not counts.any():
            return None
        rollouts = tuple(self._issue(view, counts))
        if self._ledger is not None:
            self._ledger.wave(self.index, self._wave, rollouts, view.digest())
        self._paid += counts
        self._issued.update((rollout.id, rollout) for rollout in rollouts)
        self._wave += 1
        known = self._recall()
        return Wave(self._wave - 1, counts, tuple(r for r in rollouts if r.id not in known))

    def observe(self, *rollouts: Rollout) -> None:
        """Take in what came back, in any order; a rollout observed before, or after the close, changes nothing.

        Raises:
            RollwiseError: for a rollout this step did not issue, or a reward or token count that is none; nothing is taken
                in then.
        """
        fresh: dict[str, Rollout] = {}
        for rollout in rollouts:
            if rollout.id not in self._issued:
                raise RollwiseError(f"observe: step {self.index} issued no rollout {rollout.id!r}")
            check_result(self._issued[rollout.id], rollout)
            if rollout.id not in self._observed and not self._closed:
                fresh.setdefault(rollout.id, rollout)
        if self._ledger is not None:
            self._ledger.observe(self.index, fresh.values())
            if self._ledger.holds(self.index, self._wave):
                return
        for rollout in fresh.values():
            self._take(rollout)

    def close(self, advantage: Advantage | None = None) -> StepRecord:
        """End the step: rollouts still missing become unknown, and every row gets its advantage and weight.

        Rows are in order of issue. A row without reward (unknown) has advantage 0. `advantage` replaces the step's
        estimator, for callers that aggregate several reward columns themselves.
        """
        self._recall(everything=True)
        lost = tuple(rollout for key, rollout in self._issued.items() if key not in self._observed)
        self.observe(*lost)
        self._recall(everything=True)
        self._closed = True
        rows, label_metrics = settle_labels(self._labels, tuple(self._observed[key] for key in self._issued))
        rewards = np.array([np.nan if row.reward is None else row.reward for row in rows], dtype=np.float64)
        groups = [row.group_id for row in rows]
        slots = np.array([self.slot_of[row.group_id] for row in rows], dtype=np.int64)
        if self._labels != "verifier":
            self._recount(rows, slots)
        ascended = np.ones(len(self.prompt_ids)) if self._objective_weights is None else self._objective_weights
        record = StepRecord(
            step=self.index,
            prompt_ids=self.prompt_ids,
            counts=self._paid.copy(),
            successes=self._counts[Outcome.SUCCESS].copy(),
            failures=self._counts[Outcome.FAILURE].copy(),
            unknown=self._counts[Outcome.UNKNOWN].copy(),
            rollouts=rows,
            slots=slots,
            advantages=np.zeros(len(rows)),
            weights=ascended[slots],
            factors={},
            waves=self._wave,
            budget=self.budget,
            metrics=step_metrics(self._paid, self._counts, slots, rewards, groups)
            | {
                "reward_first_wave": prompt_mean(slots, rewards, np.array([not row.wave for row in rows], dtype=bool)),
                "waves": float(self._wave),
                "lost": float(len(lost)),
                **label_metrics,
                **rule_metrics(self._allocator),
            },
        )
        record = weigh_rows(record, self._curators, advantage or self._advantage, self._weighting, self._rng)
        if self._ledger is not None:
            self._ledger.close_step(record)
        return record

    def _issue(self, view: StepView, counts: IntArray) -> list[Rollout]:
        a, b = view.prior_a + view.successes, view.prior_b + view.failures
        first = len(self._issued)
        return [
            Rollout(
                id=f"{self.index}-{first + k}",
                prompt_id=self.prompt_ids[slot],
                group_id=self.group_ids[slot],
                wave=self._wave,
                belief=(float(a[slot]), float(b[slot])),
            )
            for k, slot in enumerate(np.repeat(np.arange(len(counts)), counts))
        ]

    def _recall(self, everything: bool = False) -> dict[str, Rollout]:
        """Take in what the ledger knows of the rollouts issued; returns all it knows of this step.

        A wave that follows in the ledger was decided before later outcomes came, so those wait for it: taken at once,
        they would change the decision, and the wave would be paid for again.
        """
        if self._ledger is None:
            return {}
        known = self._ledger.known(self.index)
        count = len(known) if everything else self._ledger.known_at(self.index, self._wave)
        for key in list(known)[:count]:
            if key in self._issued and key not in self._observed:
                self._take(known[key])
        return known

    def _recount(self, rows: Sequence[Rollout], slots: IntArray) -> None:
        for outcome, counts in self._counts.items():
            counts[:] = np.bincount(slots, [row.outcome is outcome for row in rows], len(counts))

    def _expected_cost(self) -> FloatArray:
        if self._costs is None:
            return np.ones(len(self.prompt_ids))
        a, b = self._prior.T + (self._counts[Outcome.SUCCESS], self._counts[Outcome.FAILURE])
        return (a * self._costs[:, 0] + b * self._costs[:, 1]) / (a + b)

    def _take(self, rollout: Rollout) -> None:
        slot = self.slot_of[rollout.group_id]
        self._observed[rollout.id] = rollout
        self._counts[rollout.outcome][slot] += 1
        self._tokens[slot] += rollout.tokens
        if rollout.answer:
            self._ballots[slot][rollout.answer] += 1
            self._votes[slot] = leading_votes(self._ballots[slot])
        if rollout.gradient_norm is not None:
            self._norms[slot] += (rollout.gradient_norm, 1)
