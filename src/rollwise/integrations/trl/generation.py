"""A step's rollouts through TRL: wave by wave by the parent's own method, and from them what the optimizer gets."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object

from rollwise.allocators.base import Allocator
from rollwise.allocators.uniform import Uniform
from rollwise.integrations.trl.block import Block
from rollwise.integrations.trl.config import BY_SCALE
from rollwise.integrations.trl.gradients import gradient_norms
from rollwise.integrations.trl.levers import Levers
from rollwise.integrations.trl.prompts import Prompts
from rollwise.integrations.trl.resumable import ResumableTrainer
from rollwise.integrations.trl.rows import build_block
from rollwise.integrations.trl.scores import Scores, report
from rollwise.integrations.trl.startup import blaming, has_relative_positions
from rollwise.step import Step, Wave
from rollwise.types import RollwiseError, StepRecord


class WaveTrainer(ResumableTrainer):
    """Makes the rollouts a step asks for. A subclass sets `_rule`, `_choice`, `_budget`, and `_scores` after each wave."""

    pad_to_multiple_of: int | None
    _rule: Allocator
    _choice: Levers
    _budget: int
    _scores: Scores

    def _make_block(self, step: Step, prompts: Prompts) -> Block:
        """Generate and score the step's rollouts, wave by wave; this process makes its share of each."""
        block = Block(self._metrics["train"])
        width = None if self._in_one_wave else self._prompt_width(prompts.rows)
        while wave := self._decide(step):
            self._agree(step, wave)
            mine = self._share(wave)
            rows = [copy.copy(prompts.rows[wave.rollouts[k].prompt_id]) for k in mine]
            block.stock = self._is_stock_layout(step, wave)
            part = self._run_wave(rows, self.num_generations, None) if block.stock else self._run_wave(rows, 1, width)
            scored = self._behaviour(part) if self._choice.needs else None
            # norms are for the decisions to come, and after the last wave there is none
            wanted = "gradient_norm" in getattr(self._rule, "needs", ()) and step.view.budget_left
            report(step, wave, self._scores, scored, self._norms(part) if wanted else None)
            block.add(part, mine, self._scores)
        if not block.wave_sizes:
            raise RollwiseError(
                f"allocator: {self._rule.name} gave step {step.index} no rollout, and a step of the trainer needs some; "
                "set n_min to 1 or more"
            )
        return block

    def _decide(self, step: Step) -> Wave | None:
        with blaming(self._rule, self.args.allocator):
            return step.next_wave()

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

    def _share(self, wave: Wave) -> np.ndarray:
        """Which of the wave's rollouts this process makes: an equal, contiguous part."""
        each = len(wave.rollouts) // self.accelerator.num_processes
        return np.arange(each) + each * self.accelerator.process_index

    def _agree(self, step: Step, wave: Wave) -> None:
        """Compare the processes' decisions; a difference would send them different ways and hang the run."""
        decisions = gather_object([(step.view.digest(), wave.counts.tolist())])
        if any(decision != decisions[0] for decision in decisions):
            raise RollwiseError(
                f"allocator: {self._rule.name} decided differently on two processes at step {step.index}; "
                "let it depend on nothing but the view and the generator it is given"
            )

    @property
    def _in_one_wave(self) -> bool:
        return isinstance(self._rule, Uniform) and not self.args.force_waves

    def _is_stock_layout(self, step: Step, wave: Wave) -> bool:
        """Whether this wave is what TRL makes itself: everything at once, equal groups, its own advantages."""
        return (
            wave.index == 0
            and step.view.budget_left == 0
            and bool((wave.counts == self.num_generations).all())
            and self.args.advantage in (None, BY_SCALE[self.scale_rewards])
            and step.view.objective_weights is None
            and self.args.labels == "verifier"
            and wave.counts.sum() == self._budget
            and not (self._choice.curators or self._choice.copies)
        )

    def _prompt_width(self, rows: dict[str, dict[str, Any]]) -> int | None:
        """Tokens of the step's longest prompt, where padding must not differ between waves; else None."""
        if has_relative_positions(self.model.config):
            return None
        longest = max(len(ids) for ids in self._tokenize_prompts([row["prompt"] for row in rows.values()])[0])
        multiple = self.pad_to_multiple_of or 1
        return -(-longest // multiple) * multiple

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

    def _norms(self, part: dict[str, Any]) -> np.ndarray:
        """(n,) gradient norms of the wave's rollouts, of all processes."""
        model = self.accelerator.unwrap_model(self.model)
        with self.accelerator.autocast():
            own = gradient_norms(model, part, self.temperature, self.args.per_device_train_batch_size)
        return self.accelerator.gather(own).cpu().numpy()

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
