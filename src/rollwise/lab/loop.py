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
from rollwise.lab.arms import Arm, oracle_beliefs
from rollwise.lab.dynamics import step_dynamics
from rollwise.lab.losses import get_loss
from rollwise.lab.measure import measure_accuracy, success_rates
from rollwise.lab.model import Completions
from rollwise.lab.pools import Problems
from rollwise.lab.state import read_state, write_state
from rollwise.lab.tasks import get_task
from rollwise.lab.training import Progress, Training
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
        self.rule, self.loss, self.objective = arm.rule(), get_loss(arm.loss), arm.ascended()
        self.beliefs = None if arm.prior == "oracle" else prior_source(arm.prior, discount=arm.discount)
        self.weighers = prior_source("carried", discount=arm.discount) if arm.weigh_by == "carried" else None
        self.progress = Progress()
        self._state, self._ledger = state, ledger
        self._evaluation = evaluation_set(self.task)
        if state is not None and state.exists():
            self._load(state)
        else:
            self._evaluate()

    @property
    def done(self) -> bool:
        """Whether the run has spent its rollouts, or made its updates."""
        if self.training.until == "steps":
            return self.progress.step >= self.training.steps
        return self.progress.spent >= self.training.steps * self.training.budget

    def finish(self, report: Callable[[Progress], None] | None = None) -> dict[str, Any]:
        """Step until done; the result as plain data. `report` is called after every step."""
        while not self.done:
            self.step()
            if report is not None:
                report(self.progress)
        return self.result()

    def step(self) -> StepRecord:
        """One training step: choose prompts, generate in waves, close, update; evaluate and save where due."""
        began = time.process_time()
        at = self.progress
        problems, budget = self._choose()
        rates = self._rates(problems)
        opening = self._opening(self.beliefs, problems, rates)
        rng = np.random.default_rng([self.seed, at.step, 21])
        step = Step(
            problems.ids,
            self.rule,
            budget,
            rng=rng,
            index=at.step,
            waves=1 if self.arm.allocator == "uniform" else self.arm.waves,
            prior=opening,
            n_min=self.arm.n_min,
            n_max=self.arm.n_max,
            advantage=self.arm.estimator,
            weighting=self.arm.weighting,
            objective=self.objective if self.arm.weigh_by == "prior" else "none",
            ledger=self._ledger,
        )
        made = self._generate(step, problems, budget)
        record = step.close()
        advantages = record.advantages * self._weights(problems, rates)[record.slots]
        norm, trained = self._update(problems, record.slots, advantages, made)
        for source in (self.beliefs, self.weighers):
            if source is not None:
                source.observe(record.prompt_ids, record.successes, record.failures)
        tokens = int(made.lengths.sum())
        at.step, at.spent, at.tokens = at.step + 1, at.spent + int(record.counts.sum()), at.tokens + tokens
        own = {"tokens": float(tokens), "trained_rollouts": float(trained), "gradient_norm": norm}
        own |= step_dynamics(made, advantages)
        for name, value in ({key: record.metrics[key] for key in LOGGED} | own).items():
            at.metrics.setdefault(name, []).append(float(f"{value:.5g}"))
        at.seconds += time.process_time() - began
        grid = self.training.evaluate_every * self.training.budget
        if self.done or at.spent // grid > int(at.curve[-1]["rollouts"]) // grid:
            self._evaluate()
        if self._state is not None and (self.done or at.step % self.training.save_every == 0):
            self._save(self._state)
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

    def _choose(self) -> tuple[Problems, int]:
        """The step's prompts, in the order of the seed's epochs, and its budget; a last one may be too small for all."""
        training, pool = self.training, self.start.pool
        budget, prompts = training.budget, training.prompts
        if training.until == "rollouts":
            budget = min(budget, training.steps * training.budget - self.progress.spent)
            prompts = min(prompts, max(1, budget // max(1, self.arm.n_min)))
        epoch, place = divmod(self.progress.step, len(pool) // training.prompts)
        order = np.random.default_rng([self.seed, epoch, 22]).permutation(len(pool))
        return pool.take(order[place * training.prompts :][:prompts]), budget

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

    def _generate(self, step: Step, problems: Problems, budget: int) -> Completions:
        """Generate, grade and report wave by wave; the step's completions in order of issue.

        A prompt's k-th rollout has the same noise whichever arm asks for it, and in whichever wave.
        """
        size, longest = len(problems), self.task.answer_tokens
        generator = torch.Generator().manual_seed(self.seed * 100_003 + step.index)
        noise = torch.rand(size, budget, longest, generator=generator)
        with torch.no_grad():
            prefix = self.model.prefill(torch.as_tensor(problems.prompts))
        waves: list[Completions] = []
        paid = np.zeros(size, dtype=np.int64)
        while wave := step.next_wave():
            slots = np.repeat(np.arange(size), wave.counts)
            places = np.arange(len(slots)) - np.repeat(np.cumsum(wave.counts) - wave.counts, wave.counts) + paid[slots]
            began = time.process_time()
            made = self.model.generate(prefix, torch.as_tensor(wave.counts), noise[slots, places])
            self.progress.generating += time.process_time() - began
            right = self.task.grade(made.tokens.numpy(), problems.answers[slots])
            rows = zip(wave.rollouts, right, made.lengths.tolist(), strict=True)
            step.observe(*(rollout.result(bool(won), tokens=length) for rollout, won, length in rows))
            waves.append(made)
            paid += wave.counts
        return Completions(
            *(torch.cat([getattr(w, name) for w in waves]) for name in ("tokens", "logprobs", "lengths"))
        )

    def _update(
        self, problems: Problems, slots: IntArray, advantages: FloatArray, made: Completions
    ) -> tuple[float, int]:
        """The step's updates; the gradient's norm before clipping and how many rollouts took part.

        Rollouts with advantage 0 count in the averages and need no pass. Without any other there is no update: one on
        nothing would still move the weights, by the optimizer's momentum.
        """
        live = np.flatnonzero(advantages)
        if not len(live):
            return 0.0, 0
        for group in self.optimizer.param_groups:
            group["lr"] = self.arm.lr * self._pace()
        scale = self.loss.scale(made.lengths, self.task.answer_tokens)[live]
        gain = torch.as_tensor(advantages[live], dtype=torch.float32)
        served, rows = np.unique(slots[live], return_inverse=True)
        prompts, place = torch.as_tensor(problems.prompts[served]), torch.as_tensor(rows)
        longest = int(made.lengths[live].max())
        tokens, old = made.tokens[live, :longest], made.logprobs[live, :longest]
        mask = torch.arange(longest) < made.lengths[live][:, None]
        norm = 0.0
        for _ in range(self.arm.updates):
            self.loss(self.model.logprobs(prompts, tokens, place), old, gain, mask, scale).backward()
            norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0))
            self.optimizer.step()
            self.optimizer.zero_grad()
        return norm, len(live)

    def _pace(self) -> float:
        """Share of the learning rate: a ramp over the first steps, since the optimizer starts without a scale."""
        ramp = min(1.0, (self.progress.step + 1) / RAMP)
        if self.arm.schedule == "constant":
            return ramp
        total = self.training.steps * (self.training.budget if self.training.until == "rollouts" else 1)
        spent = self.progress.spent if self.training.until == "rollouts" else self.progress.step
        return ramp * (1.0 - spent / total)

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
        sources = {"beliefs": self.beliefs, "weighers": self.weighers}
        state = {
            "key": self.arm.key,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": vars(self.progress),
            **{name: source and source.state_dict() for name, source in sources.items()},
        }
        write_state(path, state)

    def _load(self, path: Path) -> None:
        state = read_state(path)
        if state["key"] != self.arm.key:
            raise RollwiseError(f"out: {path} was saved by another arm; give another folder")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = replace(Progress(), **state["progress"])
        for name, source in (("beliefs", self.beliefs), ("weighers", self.weighers)):
            if source is not None:
                source.load_state_dict(state[name])
