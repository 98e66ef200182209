"""`RollwiseGRPOTrainer`: TRL's `GRPOTrainer`, whose steps divide their rollouts where they teach most.

Three methods are overridden, all by calling the parent: `_generate_and_score_completions` runs the parent once per wave
on the rows the step decides, `_calculate_rewards` listens to what the parent scored, `_compute_loss` makes up for masked
rows. Everything else here keeps ids, logs and checkpoints true. No allocation mathematics lives in this package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from datasets import Dataset

from rollwise.advantages import Advantage
from rollwise.allocators import get_allocator
from rollwise.allocators.base import Allocator
from rollwise.allocators.uniform import Observe, Uniform
from rollwise.beliefs import prior_source
from rollwise.beliefs.costs import TokenCosts
from rollwise.counterfactual import would_have_changed
from rollwise.integrations.trl import logs
from rollwise.integrations.trl.aggregation import NormaliseThenSum
from rollwise.integrations.trl.block import Block
from rollwise.integrations.trl.config import BY_SCALE, RollwiseGRPOConfig
from rollwise.integrations.trl.context import long_prompt_warning
from rollwise.integrations.trl.dataset import check_prompts, check_rows, with_index
from rollwise.integrations.trl.embeddings import opening, prompt_vectors
from rollwise.integrations.trl.generation import WaveTrainer
from rollwise.integrations.trl.judge import Judge
from rollwise.integrations.trl.levers import Levers, summary
from rollwise.integrations.trl.prompts import Prompts, gather_prompts
from rollwise.integrations.trl.rewards import checked
from rollwise.integrations.trl.rows import ROW_MEAN_LOSSES, SCALE
from rollwise.integrations.trl.scores import Scores
from rollwise.integrations.trl.settings import check_same_on_all, settings_of
from rollwise.integrations.trl.startup import (
    check_arguments,
    check_batch,
    check_positions,
    rehearse,
    small_step_warning,
    summary_lines,
)
from rollwise.integrations.trl.stop import StopWhenDone
from rollwise.integrations.trl.votes import agreement, answer_reader, outcome_reader, write_agreement
from rollwise.ledger import Ledger
from rollwise.step import Step
from rollwise.types import StepRecord


class RollwiseGRPOTrainer(WaveTrainer):
    """`GRPOTrainer` with adaptive rollout allocation; constructed and used exactly like it.

    Two arguments more: `outcome`, a callable with a reward function's signature that returns 0, 1 or None, and
    `allocator`, a rule object in place of the named one. Everything else is in `RollwiseGRPOConfig`.
    """

    reward_funcs: list[Any]

    def __init__(
        self,
        model: Any,
        reward_funcs: Any = None,
        args: RollwiseGRPOConfig | None = None,
        train_dataset: Any = None,
        *positional: Any,
        outcome: str | Callable[..., Any] | None = None,
        allocator: Allocator | None = None,
        **kwargs: Any,
    ) -> None:
        """Check everything that can be checked before the first rollout, then build TRL's trainer.

        Raises:
            RollwiseError: naming the setting that cannot be used, and a valid value.
        """
        args = check_arguments(args, reward_funcs, kwargs)
        self._rule = allocator or get_allocator(
            args.allocator,
            args.allocator_settings,
            utility=args.utility,
            advantage_form=args.advantage_form,
            sequential=args.sequential,
            block_prompts=args.block_prompts,
        )
        self._budget = int(args.generation_batch_size)
        self._prompts = self._budget // args.num_generations
        check_batch(self._prompts, args.num_generations, adaptive=not isinstance(self._rule, Uniform))
        rehearse(self._rule, self._prompts, self._budget, args)
        dataset = with_index(train_dataset, args.prompt_id_column)
        check_rows(dataset, self._prompts)
        self._choice = Levers(args, dataset, self._prompts)
        self.notes: list[str] = []
        """What is worth a warning though it can be trained, one line each."""
        super().__init__(model, reward_funcs or agreement, args, dataset, *positional, **kwargs)
        if isinstance(dataset, Dataset):
            prompts = dataset["prompt"][:]
            check_prompts(prompts, self._tokenizer)
            self.notes = long_prompt_warning(prompts, self._tokenizer, self.model.config, args.max_completion_length)
        self._names = list(self.reward_func_names)
        self.reward_funcs = [
            checked(function, name) for function, name in zip(self.reward_funcs, self._names, strict=True)
        ]
        outcomes = outcome_reader(args, outcome, self._names)
        # TRL 1.14 knows a single end token and has no list of them
        ends = [*getattr(self, "eos_token_ids", [self._tokenizer.eos_token_id]), self._tokenizer.pad_token_id]
        weights = self.reward_weights.double().cpu().numpy()
        self._judge = Judge(outcomes, weights, ends, self.accelerator, answer_reader(args, self._rule))
        rows = len(dataset) if isinstance(dataset, Dataset) else None
        self._settings = settings_of(args, self._rule, outcomes.source, self._names, rows)
        check_same_on_all(self._settings)
        vectors = prompt_vectors(args, dataset, self.accelerator)
        self._prior = prior_source(
            args.prior, discount=args.prior_discount, embeddings=vectors, settings=args.process_settings
        )
        tokens = getattr(self._rule, "token_budget", None)
        self._costs = TokenCosts(args.max_completion_length or tokens) if tokens else None
        self._block = 0
        self._spent = 0
        self._scores: Scores
        self._ledger: Ledger | None = None
        self.last_record: StepRecord | None = None
        """The `StepRecord` of the last generation block, for callbacks and inspection."""
        if self.accelerator.is_main_process:
            warning = small_step_warning(self._rule, self._prompts, self._budget)
            lines = [*summary_lines(args, self._rule, outcomes.source), *summary(self._choice), *warning]
            print("\n".join([*lines, *(f"rollwise: warning: {note}" for note in self.notes)]), flush=True)
        check_positions(self._choice.needs, self.model.config)
        self.add_callback(StopWhenDone(self))

    # -- the overridden methods -------------------------------------------------------------------------------------

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """One step: the parent's own block where the rule is uniform, else one call of the parent per wave."""
        if not self.model.training:
            return super()._generate_and_score_completions(inputs)
        further = False
        while True:
            prompts = self._enter(inputs, further)
            further = True
            if not prompts.ids:
                self._choice.observe(None)
                self._block += 1
                continue
            step = self._open_step(prompts.ids)
            block = self._make_block(step, prompts)
            record = self._close(step, block.scores)
            output = self._train_on(step, record, block)
            self._report(record, block)
            if output is not None:
                return output

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        """The parent's loss; where a mean over rows counts masked ones, over those that train."""
        loss = super()._compute_loss(model, inputs)
        return loss * inputs[SCALE] if SCALE in inputs and self.loss_type in ROW_MEAN_LOSSES else loss

    def _calculate_rewards(
        self, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], completion_ids_list: list[Any]
    ) -> torch.Tensor:
        """The parent's rewards (n over all processes, F), NaN where the outcome is unknown; kept aside with outcomes."""
        columns = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        log_extra, log_metric = self._log_completion_extra, self._log_metric
        extras = {"trainer_state": self.state, "log_extra": log_extra, "log_metric": log_metric}
        scores = self._judge.score(columns, inputs, prompts, completions, completion_ids_list, extras)
        if self.model.training:
            self._scores = scores
        return columns.new_tensor(scores.columns)

    # -- one step ---------------------------------------------------------------------------------------------------

    def _enter(self, inputs: list[dict[str, Any]], further: bool) -> Prompts:
        """Which prompts this step spends its budget on: the selector's, or those TRL's sampler drew.

        `further` rounds of a block, after one without an update, never take the sampler's prompts again.
        """
        rng = np.random.default_rng([self.args.seed, self._block, 41])
        chosen = self._choice.choose(self._prior, self._prompts, rng, further)
        if chosen is not None:
            return chosen
        entered = gather_prompts(inputs, self.args.prompt_id_column, self.num_generations)
        if not isinstance(self.train_dataset, Dataset):
            check_prompts((row["prompt"] for row in entered.rows.values()), self._tokenizer)
        return entered

    def _open_step(self, ids: Sequence[str]) -> Step:
        if self._ledger is None and self.accelerator.is_main_process:
            self._ledger = Ledger(self.rollwise_folder / "ledger.jsonl")
            self._ledger.rewind(self._block)
        # fewer prompts than a full step takes get fewer rollouts, in whole multiples of the processes
        world = self.accelerator.num_processes
        budget = -(-self.num_generations * len(ids) // world) * world
        slots = list(ids) if self._choice.copies else list(dict.fromkeys(ids))
        return Step(
            ids,
            self._rule,
            min(budget, self._budget),
            rng=np.random.default_rng([self.args.seed, self._block]),
            index=self._block,
            waves=1 if self._in_one_wave else self.args.waves,
            quantum=self.accelerator.num_processes,
            prior=opening(self._prior, slots, self.accelerator),
            n_min=self.args.n_min,
            n_max=self.args.n_max,
            advantage=self.args.advantage or BY_SCALE[self.scale_rewards],
            weighting=self.args.weighting,
            objective=self.args.objective,
            labels=self.args.labels,
            curators=self._choice.curators,
            copies=self._choice.copies,
            expected_cost=None if self._costs is None else self._costs.for_step(slots),
            ledger=self._ledger,
        )

    def _close(self, step: Step, scores: Scores) -> StepRecord:
        """Advantages by group, the record of the step, and what the beliefs learn from it."""
        estimator: Advantage | None = None
        if self.multi_objective_aggregation == "normalize_then_sum" and self.args.advantage is None:
            estimator = NormaliseThenSum(scores.columns, self._judge.weights)
        record = step.close(advantage=estimator)
        self._prior.observe(record.prompt_ids, record.successes, record.failures)
        if self._costs is not None:
            self._costs.observe(record)
        self._choice.observe(record)
        self._block += 1
        self._spent += int(record.counts.sum())
        self.last_record = record
        return record

    @property
    def selection_done(self) -> bool:
        """Whether the selector has nothing more to select, so that the run ends."""
        return self._choice.done

    @property
    def rollouts_spent(self) -> int:
        """Rollouts generated for training so far, counted as they are paid for; those of `rollouts_lost` come on top."""
        return self._spent

    @property
    def rollouts_lost(self) -> int:
        """Rollouts paid for after the checkpoint that a killed run went on from; 0 on processes other than the main."""
        return 0 if self._ledger is None else self._ledger.lost

    # -- logs -------------------------------------------------------------------------------------------------------

    def _report(self, record: StepRecord, block: Block) -> None:
        metrics = self._metrics["train"]
        if not block.stock:
            scores = block.scores
            if self.args.labels == "majority":
                scores = write_agreement(self._logs, scores, record)
            logs.rewrite(metrics, block.entries_before, block.wave_sizes, scores, self._names, record)
            logs.replace_last(self._logs["advantages"], record.advantages.tolist())
        for name, value in (record.metrics | self._choice.metrics()).items():
            metrics[f"rollwise/{name}"].append(value)
        metrics["rollwise/rollouts_spent"] = [float(self._spent)]
        if isinstance(self._rule, Observe):
            for name, value in would_have_changed(record, self.args.waves, self.args.n_min).items():
                metrics[f"rollwise/would/{name}"].append(value)
        logs.add_columns(self._logs["extra"], record)

    # -- checkpoints ------------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """What the steps to come depend on, beside the settings and what TRL keeps."""
        return {
            "block": self._block,
            "spent": self._spent,
            "seen": sorted(self._judge.outcomes.seen),
            "prior": self._prior.state_dict(),
            "levers": {name: lever.state_dict() for name, lever in self._levers().items()},
            "payload": self._choice.payload.state_dict(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        """Take over what `_state` gave."""
        self._prior.load_state_dict(state["prior"])
        for name, lever in self._levers().items():
            lever.load_state_dict(state["levers"][name])
        self._choice.payload.load_state_dict(state["payload"], self.accelerator.device)
        self._block, self._spent = state["block"], state["spent"]
        self._judge.outcomes.seen = set(state["seen"])

    def _restart(self, blocks: int) -> None:
        """Go on after `blocks` blocks that another trainer made."""
        self._block, self._spent = blocks, blocks * self._budget

    def _levers(self) -> dict[str, Any]:
        """The levers that carry something from step to step, by name."""
        rule = {"allocator": self._rule} if hasattr(self._rule, "state_dict") else {}
        costs = {"costs": self._costs} if self._costs is not None else {}
        return rule | costs | self._choice.parts()
