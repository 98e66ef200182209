"""`RollwiseGRPOTrainer`: TRL's `GRPOTrainer`, whose steps divide their rollouts where they teach most.

Two methods are overridden, both by calling the parent: `_generate_and_score_completions` runs the parent once per wave
on the rows the step decides, `_calculate_rewards` listens to what the parent scored. Everything else here keeps ids,
logs and checkpoints true. No allocation mathematics lives in this package.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from datasets import Dataset

from rollwise.advantages import Advantage
from rollwise.allocators import get_allocator
from rollwise.allocators.base import Allocator
from rollwise.allocators.uniform import Observe, Uniform
from rollwise.beliefs import prior_source
from rollwise.counterfactual import would_have_changed
from rollwise.integrations.trl import logs
from rollwise.integrations.trl.aggregation import NormaliseThenSum
from rollwise.integrations.trl.block import Block
from rollwise.integrations.trl.config import BY_SCALE, RollwiseGRPOConfig
from rollwise.integrations.trl.dataset import check_prompts, check_rows, with_index
from rollwise.integrations.trl.judge import Judge
from rollwise.integrations.trl.levers import Levers, summary
from rollwise.integrations.trl.outcomes import OutcomeReader
from rollwise.integrations.trl.prompts import Prompts, gather_prompts
from rollwise.integrations.trl.resumable import ResumableTrainer
from rollwise.integrations.trl.rewards import checked
from rollwise.integrations.trl.rows import ROW_MEAN_LOSSES, SCALE, build_block
from rollwise.integrations.trl.scores import Scores, report
from rollwise.integrations.trl.settings import check_same_on_all, settings_of
from rollwise.integrations.trl.startup import (
    check_arguments,
    check_batch,
    has_relative_positions,
    rehearse,
    small_step_warning,
    summary_lines,
)
from rollwise.integrations.trl.stop import StopWhenDone
from rollwise.ledger import Ledger
from rollwise.step import Step, Wave
from rollwise.types import RollwiseError, StepRecord


class RollwiseGRPOTrainer(ResumableTrainer):
    """`GRPOTrainer` with adaptive rollout allocation; constructed and used exactly like it.

    Two arguments more: `outcome`, a callable with a reward function's signature that returns 0, 1 or None, and
    `allocator`, a rule object in place of the named one. Everything else is in `RollwiseGRPOConfig`.
    """

    pad_to_multiple_of: int | None
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
            utility=args.utility,
            advantage_form=args.advantage_form,
            sequential=args.sequential,
            block_prompts=args.block_prompts,
            **(args.allocator_settings or {}),
        )
        self._budget = int(args.generation_batch_size)
        self._prompts = self._budget // args.num_generations
        check_batch(self._prompts, args.num_generations, adaptive=not isinstance(self._rule, Uniform))
        rehearse(self._rule, self._prompts, self._budget, args)
        dataset = with_index(train_dataset, args.prompt_id_column)
        check_rows(dataset, self._prompts)
        self._choice = Levers(args, dataset, self._prompts)
        super().__init__(model, reward_funcs, args, dataset, *positional, **kwargs)
        if isinstance(dataset, Dataset):
            check_prompts(dataset["prompt"][:], self._tokenizer)
        self._names = list(self.reward_func_names)
        self.reward_funcs = [
            checked(function, name) for function, name in zip(self.reward_funcs, self._names, strict=True)
        ]
        outcomes = OutcomeReader(outcome or args.outcome, args.outcome_threshold, self._names)
        # TRL 1.14 knows a single end token and has no list of them
        ends = [*getattr(self, "eos_token_ids", [self._tokenizer.eos_token_id]), self._tokenizer.pad_token_id]
        self._judge = Judge(outcomes, self.reward_weights.double().cpu().numpy(), ends, self.accelerator)
        rows = len(dataset) if isinstance(dataset, Dataset) else None
        self._settings = settings_of(args, self._rule, outcomes.source, self._names, rows)
        check_same_on_all(self._settings)
        self._prior = prior_source(args.prior, discount=args.prior_discount)
        self._block = 0
        self._spent = 0
        self._scores: Scores
        self._ledger: Ledger | None = None
        self.last_record: StepRecord | None = None
        """The `StepRecord` of the last generation block, for callbacks and inspection."""
        if self.accelerator.is_main_process:
            warning = small_step_warning(self._rule, self._prompts, self._budget)
            lines = [*summary_lines(args, self._rule, outcomes.source), *summary(self._choice), *warning]
            print("\n".join(lines), flush=True)
        if "payload" in self._choice.needs and not has_relative_positions(self.model.config):
            raise RollwiseError(
                "curators: rollouts that train again need a model whose scores do not depend on padding; this one has "
                "absolute positions"
            )
        self.add_callback(StopWhenDone(self))

    # -- the two overridden methods ---------------------------------------------------------------------------------

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
        """The parent's rewards (n over all processes, F), kept aside with outcomes, lengths and end flags."""
        columns = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        if self.model.training:
            extras = {
                "trainer_state": self.state,
                "log_extra": self._log_completion_extra,
                "log_metric": self._log_metric,
            }
            self._scores = self._judge.score(columns, inputs, prompts, completions, completion_ids_list, extras)
        return columns

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
        return Step(
            ids,
            self._rule,
            min(budget, self._budget),
            rng=np.random.default_rng([self.args.seed, self._block]),
            index=self._block,
            waves=1 if self._in_one_wave else self.args.waves,
            quantum=self.accelerator.num_processes,
            prior=self._prior.for_step(list(ids) if self._choice.copies else list(dict.fromkeys(ids))),
            n_min=self.args.n_min,
            n_max=self.args.n_max,
            advantage=self.args.advantage or BY_SCALE[self.scale_rewards],
            weighting=self.args.weighting,
            objective=self.args.objective,
            curators=self._choice.curators,
            copies=self._choice.copies,
            ledger=self._ledger,
        )

    def _make_block(self, step: Step, prompts: Prompts) -> Block:
        """Generate and score the step's rollouts, wave by wave; this process makes its share of each."""
        block = Block(self._metrics["train"])
        width = None if self._in_one_wave else self._prompt_width(prompts.rows)
        while wave := step.next_wave():
            self._agree(step, wave)
            mine = self._share(wave)
            rows = [copy.copy(prompts.rows[wave.rollouts[k].prompt_id]) for k in mine]
            block.stock = self._is_stock_layout(step, wave)
            part = self._run_wave(rows, self.num_generations, None) if block.stock else self._run_wave(rows, 1, width)
            report(step, wave, self._scores, self._behaviour(part) if self._choice.needs else None)
            block.add(part, mine, self._scores)
        return block

    @property
    def _in_one_wave(self) -> bool:
        return isinstance(self._rule, Uniform) and not self.args.force_waves

    def _run_wave(self, rows: list[dict[str, Any]], group_size: int, width: int | None) -> dict[str, Any]:
        """Let the parent generate and score `rows`; its own grouping is made harmless with groups of one.

        `width` makes every wave pad prompts alike: a model with absolute positions would otherwise score the same tokens
        differently here (old and reference log-probabilities) and in the merged block (the loss).
        """
        kept = self.num_generations, self.pad_to_multiple_of
        self.num_generations, self.pad_to_multiple_of = group_size, width or self.pad_to_multiple_of
        try:
            return super()._generate_and_score_completions(rows)
        finally:
            self.num_generations, self.pad_to_multiple_of = kept

    def _behaviour(self, part: dict[str, Any]) -> np.ndarray:
        """(n,) summed log-probability at generation of the wave's rollouts, of all processes.

        Rows that may train again take theirs along, token by token; where TRL needs none, this costs one forward pass.
        """
        logprobs = part.get("sampling_per_token_logps", part.get("old_per_token_logps"))
        if logprobs is None:
            ids = torch.cat([part["prompt_ids"], part["completion_ids"]], dim=1)
            seen = torch.cat([part["prompt_mask"], part["completion_mask"]], dim=1)
            with torch.no_grad():
                logprobs = self._get_per_token_logps_and_entropies(
                    self.model,
                    ids,
                    seen,
                    part["completion_ids"].size(1),
                    batch_size=self.args.per_device_train_batch_size,
                )[0]
            if "payload" in self._choice.needs:
                part["old_per_token_logps"] = logprobs
        summed = (logprobs * part["completion_mask"]).sum(1)
        return self.accelerator.gather(summed).double().cpu().numpy()

    def _train_on(self, step: Step, record: StepRecord, block: Block) -> dict[str, Any] | None:
        """What the optimizer gets of this round; None where nothing is left to train."""
        pad = self._tokenizer.pad_token_id
        whole = len(record.rollouts) == self._budget and record.kept is None and not record.stored
        if whole and not self._choice.needs:
            return block.merge(record, pad)
        ids = [rollout.id for rollout in record.rollouts]
        own, owners = block.rows(ids, self.accelerator.num_processes)
        kept = self._choice.payload
        order = record.trained[np.argsort(record.slots[record.trained], kind="stable")]
        chosen = [*(ids[place] for place in order), *(row.rollout.id for row in record.stored)]
        gains = np.array([*record.advantages[order], *(row.advantage for row in record.stored)], dtype=np.float64)
        output = None
        if chosen:
            chunks = self.args.steps_per_generation
            rows, places = own | kept.rows, owners | kept.owners
            output = build_block(chosen, gains, places, rows, self.accelerator, chunks, pad)
        kept.keep(frozenset().union(*(curator.held for curator in self._choice.curators)), own, owners)
        return output

    def _prompt_width(self, rows: dict[str, dict[str, Any]]) -> int | None:
        """Tokens of the step's longest prompt, where padding must not differ between waves; else None."""
        if has_relative_positions(self.model.config):
            return None
        longest = max(len(ids) for ids in self._tokenize_prompts([row["prompt"] for row in rows.values()])[0])
        multiple = self.pad_to_multiple_of or 1
        return -(-longest // multiple) * multiple

    def _is_stock_layout(self, step: Step, wave: Wave) -> bool:
        """Whether this wave is what TRL makes itself: everything at once, equal groups, its own advantages."""
        return (
            wave.index == 0
            and step.view.budget_left == 0
            and bool((wave.counts == self.num_generations).all())
            and self.args.advantage in (None, BY_SCALE[self.scale_rewards])
            and step.view.objective_weights is None
            and wave.counts.sum() == self._budget
            and not (self._choice.curators or self._choice.copies)
        )

    def _share(self, wave: Wave) -> np.ndarray:
        """Which of the wave's rollouts this process makes: an equal, contiguous part."""
        each = len(wave.rollouts) // self.accelerator.num_processes
        return np.arange(each) + each * self.accelerator.process_index

    def _close(self, step: Step, scores: Scores) -> StepRecord:
        """Advantages by group, the record of the step, and what the beliefs learn from it."""
        estimator: Advantage | None = None
        if self.multi_objective_aggregation == "normalize_then_sum" and self.args.advantage is None:
            estimator = NormaliseThenSum(scores.columns, self._judge.weights)
        record = step.close(advantage=estimator)
        self._prior.observe(record.prompt_ids, record.successes, record.failures)
        self._choice.observe(record)
        self._block += 1
        self._spent += int(record.counts.sum())
        self.last_record = record
        return record

    def _agree(self, step: Step, wave: Wave) -> None:
        """Compare the processes' decisions; a difference would send them different ways and hang the run."""
        decisions = gather_object([(step.view.digest(), wave.counts.tolist())])
        if any(decision != decisions[0] for decision in decisions):
            raise RollwiseError(
                f"allocator: {self._rule.name} decided differently on two processes at step {step.index}; "
                "let it depend on nothing but the view and the generator it is given"
            )

    @property
    def selection_done(self) -> bool:
        """Whether the selector has nothing more to select, so that the run ends."""
        return self._choice.done

    @property
    def rollouts_spent(self) -> int:
        """Rollouts generated for training so far, counted as they are paid for."""
        return self._spent

    # -- logs -------------------------------------------------------------------------------------------------------

    def _report(self, record: StepRecord, block: Block) -> None:
        metrics = self._metrics["train"]
        if not block.stock:
            logs.rewrite(metrics, block.entries_before, block.wave_sizes, block.scores, self._names, record)
            logs.replace_last(self._logs["advantages"], record.advantages.tolist())
        for name, value in record.metrics.items():
            metrics[f"rollwise/{name}"].append(value)
        metrics["rollwise/rollouts_spent"] = [float(self._spent)]
        if isinstance(self._rule, Observe):
            for name, value in would_have_changed(record, self.args.waves, self.args.n_min).items():
                metrics[f"rollwise/would/{name}"].append(value)
        logs.add_columns(self._logs["extra"], record)

    # -- checkpoints ------------------------------------------------------------------------------------------------

    @property
    def rollwise_folder(self) -> Path:
        """Where the ledger lives: `output_dir/rollwise`."""
        return Path(self.args.output_dir) / "rollwise"

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
        return rule | self._choice.parts()
