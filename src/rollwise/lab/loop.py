"""One run: GRPO on a task from a warm start, every rollout through `rollwise.step.Step`, reproducible and resumable."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rollwise.beliefs import PriorSource, prior_source
from rollwise.lab.arms import Arm
from rollwise.lab.beliefs import open_beliefs, oracle_beliefs
from rollwise.lab.dynamics import step_dynamics
from rollwise.lab.losses import get_loss
from rollwise.lab.measure import measure_accuracy, success_rates
from rollwise.lab.pools import Problems
from rollwise.lab.sampling import Means, play_step
from rollwise.lab.state import read_state, write_state
from rollwise.lab.tasks import get_task
from rollwise.lab.training import Progress, Training
from rollwise.lab.update import Payload, Rows, join_rows, rows_of, update
from rollwise.lab.warmup import Start, evaluation_set, load_model
from rollwise.ledger import Ledger
from rollwise.objectives import objective_weights
from rollwise.step import Step
from rollwise.types import FloatArray, IntArray, RollwiseError, StepRecord

LOGGED = (
    "rollouts",
    "dead_prompt_share",
    "informative_rollout_share",
    "unsolved_share",
    "reward_prompt_mean",
    "alloc_entropy",
    "max_n",
    "waves",
)
"""Metrics of `rollwise.metrics` kept for every step, beside `tokens`, `trained_rollouts`, `gradient_norm` and those of
`rollwise.lab.dynamics`."""

WIDE = 2
"""Rollouts of a step that spends tokens, in those of a step that spends rollouts: room for short completions."""

RAMP = 20
"""Steps over which the learning rate rises."""


class Run:
    """One arm, task and seed.

    run = Run(arm, training, start)
    result = run.finish()

    Seconds are processor time of this process, evaluation left out.
    """

    def __init__(
        self, arm: Arm, training: Training, start: Start, *, state: Path | None = None, ledger: Ledger | None = None
    ) -> None:
        """Open a run, or take up the one saved in the file `state`.

        Args:
            arm, training: what to run; the seed is that of `training.warmup`.
            start: warm weights and pool of that seed.
            state: file the run is saved in every `save_every` steps and taken up from.
            ledger: record of every rollout, for audits; a run of usual size writes some 20 MB.
        """
        self.arm, self.training, self.start = arm, training, start
        self.task = get_task(training.warmup.task)
        self.seed = training.warmup.seed
        self.model = load_model(self.task, training.warmup.size, start.weights)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=arm.lr, betas=(0.9, 0.99), weight_decay=0.0, fused=True
        )
        self.rule, self.loss, self.objective = arm.rule(training.tokens), get_loss(arm.loss), arm.ascended()
        self.beliefs = open_beliefs(arm, start.pool, self.model)
        self.weighers = prior_source("carried", discount=arm.discount) if arm.weigh_by == "carried" else None
        self._flat = prior_source("1,1")
        self.costs = arm.token_costs(training)
        self._means = Means(self.rule, training.budget, votes=arm.labels == "majority")
        self.selector, self.curators = arm.choose_prompts(training.steps, self.seed), arm.choose_rows()
        self.progress = Progress()
        self._payload = Payload()
        self._state, self._ledger = state, ledger
        self._evaluation = evaluation_set(self.task)
        if state is not None and state.exists():
            self._load(state)
        else:
            self._evaluate()

    @property
    def done(self) -> bool:
        """Whether the run has spent its rollouts or tokens, or made its steps, or has no prompt left to select."""
        if self.selector is not None and self.selector.done:
            return True
        return self.progress.used(self.training.until) >= self.training.total

    def finish(self, report: Callable[[Progress], None] | None = None) -> dict[str, Any]:
        """Step until done; the result as plain data. `report` is called after every step."""
        while not self.done:
            self.step()
            if report is not None:
                report(self.progress)
        return self.result()

    def step(self) -> StepRecord | None:
        """One training step: choose prompts, generate in waves, close, update; evaluate and save where due.

        None for an idle round, in which the selector chose nothing.
        """
        began = time.process_time()
        at = self.progress
        places, budget = self._choose()
        record = self._train(places, budget) if len(places) else None
        at.step += 1
        at.seconds += time.process_time() - began
        grid, axis = self.training.grid, self.training.axis
        if self.done or at.used(axis) // grid > int(at.curve[-1][axis]) // grid:
            self._evaluate()
        if self._state is not None and (self.done or at.step % self.training.save_every == 0):
            self._save(self._state)
        return record

    def _train(self, places: IntArray, budget: int) -> StepRecord:
        """A step on the problems at those places of the pool, which may repeat."""
        at, arm = self.progress, self.arm
        chosen = self.start.pool.take(places)
        copies = self.selector is not None and self.selector.copies
        # prompts that repeat without copies share a slot, in order of first occurrence
        problems = chosen if copies else chosen.take(np.sort(np.unique(places, return_index=True)[1]))
        rates = self._rates(problems)
        opening = self._opening(self.beliefs, problems, rates)
        step = Step(
            chosen.ids,
            self.rule,
            budget,
            rng=np.random.default_rng([self.seed, at.step, 21]),
            index=at.step,
            waves=1 if arm.allocator == "uniform" else arm.waves,
            prior=opening,
            n_min=min(arm.n_min, budget // len(chosen)),  # a rule that saves may leave one rollout for the last step
            n_max=arm.n_max,
            advantage=arm.estimator,
            weighting=arm.weighting,
            objective=self.objective if arm.weigh_by == "prior" else "none",
            labels=arm.labels,
            curators=self.curators,
            copies=copies,
            expected_cost=None if self.costs is None else self.costs.for_step(problems.ids),
            ledger=self._ledger,
        )
        made, seconds = play_step(self.model, self.task, step, problems, budget, self.seed, self._means)
        at.generating += seconds
        record = step.close()
        advantages = record.advantages * self._weights(problems, rates)[record.slots]
        norm, trained = self._update(record, advantages, rows_of(problems.prompts[record.slots], made))
        for source in (self.beliefs, self.weighers):
            if source is not None:
                source.observe(record.prompt_ids, record.successes, record.failures)
        for lever in (self.selector, self.costs):
            if lever is not None:
                lever.observe(record)
        tokens = int(made.lengths.sum())
        at.spent, at.tokens = at.spent + int(record.counts.sum()), at.tokens + tokens
        own = {"tokens": float(tokens), "trained_rollouts": float(trained), "gradient_norm": norm}
        own |= step_dynamics(made, advantages)
        for name, value in ({key: record.metrics[key] for key in LOGGED} | own).items():
            at.metrics.setdefault(name, []).append(float(f"{value:.5g}"))
        return record

    def result(self) -> dict[str, Any]:
        """Curve, metrics and totals, as plain data."""
        at, training = self.progress, self.training
        return {
            "arm": self.arm.name,
            "arm_key": self.arm.key,
            "task": self.task.name,
            "pool": training.warmup.pool,
            "seed": self.seed,
            "budget": training.budget,
            "axis": training.axis,
            "steps": at.step,
            "rollouts": at.spent,
            "tokens": at.tokens,
            "trained_rollouts": int(sum(at.metrics["trained_rollouts"])),
            "seconds": round(at.seconds, 3),
            "generating_seconds": round(at.generating, 3),
            "warmup_steps": self.start.steps,
            "curve": at.curve,
            "metrics": at.metrics,
        }

    def _choose(self) -> tuple[IntArray, int]:
        """Places in the pool of the step's prompts, and its budget; a last one may be too small for all prompts.

        They come in the order of the seed's epochs, or as the selector says, G rollouts each on average.
        """
        training, pool = self.training, self.start.pool
        width = WIDE if self.arm.budget == "tokens" else 1
        budget = min(width * training.budget, self.progress.rollouts_left(training))
        prompts = min(training.prompts, max(1, budget // max(1, self.arm.n_min)))
        if self.selector is not None:
            rng = np.random.default_rng([self.seed, self.progress.step, 23])
            places = self.selector.select(pool.ids, self.beliefs or self._flat, prompts, rng)
            return places, min(budget, width * training.rollouts * len(places))
        epoch, place = divmod(self.progress.step, len(pool) // training.prompts)
        order = np.random.default_rng([self.seed, epoch, 22]).permutation(len(pool))
        return order[place * training.prompts :][:prompts], budget

    def _rates(self, problems: Problems) -> FloatArray | None:
        if "oracle" not in (self.arm.prior, self.arm.weigh_by):
            return None
        return success_rates(self.model, self.task, problems, seed=self.progress.step)

    def _opening(self, source: PriorSource | None, problems: Problems, rates: FloatArray | None) -> FloatArray:
        if source is not None:
            return source.for_step(problems.ids)
        assert rates is not None
        return oracle_beliefs(rates, self.arm.strength)

    def _weights(self, problems: Problems, rates: FloatArray | None) -> FloatArray:
        """(B,) objective weight of each prompt by a belief that the step does not hold, as it was at its opening."""
        if self.arm.weigh_by == "prior":
            return np.ones(len(problems))
        return objective_weights(self.objective, self._opening(self.weighers, problems, rates))

    def _update(self, record: StepRecord, advantages: FloatArray, rows: Rows) -> tuple[float, int]:
        """The step's updates on what its curators left, as `rollwise.lab.update.update` reports them."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.arm.lr * self._pace()
        ids = [row.id for row in record.rollouts]
        parts, gains = [rows.take(record.trained)], [advantages[record.trained]]
        if record.stored:
            parts.append(self._payload.fetch([row.rollout.id for row in record.stored]))
            gains.append(np.array([row.advantage for row in record.stored], dtype=np.float64))
        self._payload.keep(ids, rows, frozenset().union(*(curator.held for curator in self.curators)))
        return update(
            self.model,
            self.optimizer,
            self.loss,
            join_rows(parts),
            np.concatenate(gains),
            longest=self.task.answer_tokens,
            passes=self.arm.updates,
        )

    def _pace(self) -> float:
        """Share of the learning rate: a ramp over the first steps, since the optimizer starts without a scale."""
        ramp = min(1.0, (self.progress.step + 1) / RAMP)
        if self.arm.schedule == "constant":
            return ramp
        return ramp * (1.0 - self.progress.used(self.training.until) / self.training.total)

    def _evaluate(self) -> None:
        found, at = measure_accuracy(self.model, self.task, self._evaluation), self.progress
        at.curve.append(
            {
                "step": at.step,
                "rollouts": at.spent,
                "tokens": at.tokens,
                "seconds": round(at.seconds, 3),
                "sampled": round(found.sampled, 6),
                "greedy": round(found.greedy, 6),
                "by_class": [round(value, 4) for value in found.by_class.tolist()],
            }
        )

    def _save(self, path: Path) -> None:
        state = {
            "key": self.arm.key,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": vars(self.progress),
            "payload": self._payload.state_dict(),
            "curators": {str(k): curator.state_dict() for k, curator in enumerate(self.curators)},
            **{name: part and part.state_dict() for name, part in self._parts().items()},
        }
        write_state(path, state)

    def _load(self, path: Path) -> None:
        state = read_state(path)
        if state["key"] != self.arm.key:
            raise RollwiseError(f"out: {path} was saved by another arm; give another folder")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = replace(Progress(), **state["progress"])
        self._payload.load_state_dict(state["payload"])
        for k, curator in enumerate(self.curators):
            curator.load_state_dict(state["curators"][str(k)])
        for name, part in self._parts().items():
            if part is not None:
                part.load_state_dict(state[name])

    def _parts(self) -> dict[str, Any]:
        """What lives between steps and may be None."""
        return {name: getattr(self, name) for name in ("beliefs", "weighers", "selector", "costs")}
