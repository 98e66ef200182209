"""`RollwiseGRPOTrainer`: TRL's `GRPOTrainer`, whose steps divide their rollouts where they teach most.

Two methods are overridden, both by calling the parent: `_generate_and_score_completions` runs the parent once per wave
on the rows the step decides, `_calculate_rewards` listens to what the parent scored. Everything else here keeps ids,
logs and checkpoints true. No allocation mathematics lives in this package.
"""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import trl
from accelerate.utils import gather_object
from trl import GRPOTrainer

from rollwise.advantages import Advantage
from rollwise.allocators import get_allocator
from rollwise.allocators.base import Allocator
from rollwise.allocators.uniform import Observe, Uniform
from rollwise.beliefs import parse_prior
from rollwise.integrations.trl import logs
from rollwise.integrations.trl.aggregation import NormaliseThenSum, sum_rewards
from rollwise.integrations.trl.checkpoint import EpochSampler, load_state, save_state
from rollwise.integrations.trl.config import BY_SCALE, RollwiseGRPOConfig
from rollwise.integrations.trl.merge import merge_waves
from rollwise.integrations.trl.rewards import OutcomeReader, checked
from rollwise.integrations.trl.startup import INDEX, check_batch, rehearse, summary_lines, with_index
from rollwise.ledger import Ledger
from rollwise.step import Step, Wave
from rollwise.types import FloatArray, Outcome, RollwiseError, StepRecord


class RollwiseGRPOTrainer(GRPOTrainer):
    """`GRPOTrainer` with adaptive rollout allocation; constructed and used exactly like it.

    Two arguments more: `outcome`, a callable with a reward function's signature that returns 0, 1 or None, and
    `allocator`, a rule object in place of the named one. Everything else is in `RollwiseGRPOConfig`.
    """

    num_generations: int
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
        if not isinstance(args, RollwiseGRPOConfig):
            raise RollwiseError("args: pass a RollwiseGRPOConfig (TRL's GRPOConfig has no allocation settings)")
        for name in ("rollout_func", "environment_factory"):
            if kwargs.get(name) is not None:
                raise RollwiseError(f"{name}: not supported, it fixes which rollouts are made; leave it out")
        self._rule = allocator or get_allocator(
            args.allocator,
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
        super().__init__(model, reward_funcs, args, dataset, *positional, **kwargs)
        self._names = list(self.reward_func_names)
        self.reward_funcs = [
            checked(function, name) for function, name in zip(self.reward_funcs, self._names, strict=True)
        ]
        self._outcomes = OutcomeReader(outcome or args.outcome, args.outcome_threshold, self._names)
        self._block = 0
        self._spent = 0
        self._scored: dict[str, Any] = {}
        self._ledger: Ledger | None = None
        self.last_record: StepRecord | None = None
        """The `StepRecord` of the last generation block, for callbacks and inspection."""
        if self.accelerator.is_main_process:
            print("\n".join(summary_lines(self._facts())), flush=True)

    # -- the two overridden methods ---------------------------------------------------------------------------------

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """One step: the parent's own block where the rule is uniform, else one call of the parent per wave."""
        if not self.model.training:
            return super()._generate_and_score_completions(inputs)
        ids = [self._id_of(row) for row in inputs]
        clean = [{key: value for key, value in row.items() if key != INDEX} for row in inputs]
        all_ids: list[str] = gather_object(ids)
        uniform = isinstance(self._rule, Uniform) and not self.args.force_waves
        copies = {key: rows // self.num_generations for key, rows in Counter(all_ids).items()}
        step = self._open_step(list(Counter(copies).elements()), waves=1 if uniform else self.args.waves)
        rows = self._rows_by_id(ids, clean)
        parts: list[dict[str, Any]] = []
        placed: list[np.ndarray] = []
        scored: list[dict[str, Any]] = []
        before = {name: len(values) for name, values in self._metrics["train"].items()}
        stock = False
        while wave := step.next_wave():
            self._agree(step)
            mine = self._share(wave)
            local = [copy.copy(rows[wave.rollouts[k].prompt_id]) for k in mine]
            stock = self._is_stock_layout(step, wave)
            parts.append(self._run_wave(local, self.num_generations if stock else 1))
            placed.append(mine + sum(len(seen["summed"]) for seen in scored))
            scored.append(self._observe(step, wave))
        if len(scored) == 1 and stock:
            output = parts[0]
            record = self._close(step, scored, output=output)
        else:
            record = self._close(step, scored)
            index = np.concatenate(placed)
            order = np.argsort(record.slots[index], kind="stable")
            output = merge_waves(parts, torch.from_numpy(order), self._tokenizer.pad_token_id)
            output["advantages"] = torch.as_tensor(
                record.advantages[index][order], dtype=torch.float32, device=self.accelerator.device
            )
            self._rewrite_logs(record, scored, before)
        self._report(record)
        return output

    def _calculate_rewards(
        self, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], completion_ids_list: list[Any]
    ) -> torch.Tensor:
        """The parent's rewards (n over all processes, F), kept aside with outcomes, lengths and end flags."""
        columns = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        if self.model.training:
            self._scored = self._score(columns, inputs, prompts, completions, completion_ids_list)
        return columns

    # -- one step ---------------------------------------------------------------------------------------------------

    def _open_step(self, ids: Sequence[str], waves: int) -> Step:
        if self._ledger is None and self.accelerator.is_main_process:
            self._ledger = Ledger(self.rollwise_folder / "ledger.jsonl")
            self._ledger.rewind(self._block)
        return Step(
            ids,
            self._rule,
            self._budget,
            rng=np.random.default_rng([self.args.seed, self._block]),
            index=self._block,
            waves=waves,
            quantum=self.accelerator.num_processes,
            prior=parse_prior(self.args.prior),
            n_min=self.args.n_min,
            n_max=self.args.n_max,
            advantage=self.args.advantage or BY_SCALE[self.scale_rewards],
            weighting=self.args.weighting,
            ledger=self._ledger,
        )

    def _run_wave(self, rows: list[dict[str, Any]], group_size: int) -> dict[str, Any]:
        """Let the parent generate and score `rows`; its own grouping is made harmless with groups of one."""
        kept, self.num_generations = self.num_generations, group_size
        try:
            return super()._generate_and_score_completions(rows)
        finally:
            self.num_generations = kept

    def _is_stock_layout(self, step: Step, wave: Wave) -> bool:
        """Whether this wave is what TRL makes itself: everything at once, equal groups, its own advantages."""
        return (
            wave.index == 0
            and step.view.budget_left == 0
            and bool((wave.counts == self.num_generations).all())
            and self.args.advantage in (None, BY_SCALE[self.scale_rewards])
        )

    def _share(self, wave: Wave) -> np.ndarray:
        """Which of the wave's rollouts this process makes: an equal, contiguous part."""
        each = len(wave.rollouts) // self.accelerator.num_processes
        return np.arange(each) + each * self.accelerator.process_index

    def _observe(self, step: Step, wave: Wave) -> dict[str, Any]:
        seen = self._scored
        step.observe(
            *(
                rollout.result(
                    outcome,
                    reward=None if np.isnan(reward) else float(reward),
                    tokens=int(tokens),
                )
                for rollout, outcome, reward, tokens in zip(
                    wave.rollouts, seen["outcomes"], seen["summed"], seen["lengths"], strict=True
                )
            )
        )
        return seen

    def _close(self, step: Step, scored: list[dict[str, Any]], output: dict[str, Any] | None = None) -> StepRecord:
        estimator: Advantage | None = None
        if self.multi_objective_aggregation == "normalize_then_sum" and self.args.advantage is None:
            columns = np.concatenate([seen["columns"] for seen in scored])
            estimator = NormaliseThenSum(columns, self._weights())
        record = step.close(advantage=estimator)
        self._block += 1
        self._spent += int(record.counts.sum())
        self.last_record = record
        return record

    def _score(
        self, columns: torch.Tensor, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], ids: Any
    ) -> dict[str, Any]:
        device = self.accelerator.device
        ends = {*self.eos_token_ids, self._tokenizer.pad_token_id}
        facts = torch.tensor([[len(tokens), tokens[-1] not in ends] for tokens in ids], device=device)
        lengths, truncated = self.accelerator.gather(facts).cpu().numpy().T
        own = None
        if self._outcomes.function is not None:
            extra = {key: [row[key] for row in inputs] for key in inputs[0] if key != "prompt"}
            judge = checked(self._outcomes.function, self._outcomes.source)
            verdicts = judge(
                prompts=prompts, completions=completions, completion_ids=ids, trainer_state=self.state, **extra
            )
            verdicts = [float("nan") if verdict is None else float(verdict) for verdict in verdicts]
            own = self.accelerator.gather(torch.tensor(verdicts, device=device)).double().cpu().numpy()
        values = columns.double().cpu().numpy()
        summed = sum_rewards(values, self._weights())
        return {
            "columns": values,
            "summed": summed,
            "lengths": lengths.astype(np.float64),
            "truncated": truncated.astype(bool),
            "outcomes": self._outcomes.read(values, summed, own),
        }

    def _weights(self) -> FloatArray:
        return self.reward_weights.double().cpu().numpy()

    # -- identity and agreement -------------------------------------------------------------------------------------

    def _id_of(self, row: dict[str, Any]) -> str:
        return str(row[self.args.prompt_id_column or INDEX])

    def _rows_by_id(self, ids: list[str], rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Every prompt's row on every process: any process may be asked to generate for any prompt of the step."""
        own = list(dict(zip(ids, rows, strict=True)).items())
        return dict(gather_object(own))

    def _agree(self, step: Step) -> None:
        """Compare the processes' views; a difference would send them different ways and hang the run."""
        digests = gather_object([step.view.digest()])
        if len(set(digests)) > 1:
            raise RollwiseError("the processes disagree on the step's outcomes; make reward functions deterministic")

    # -- logs -------------------------------------------------------------------------------------------------------

    def _rewrite_logs(self, record: StepRecord, scored: list[dict[str, Any]], before: dict[str, int]) -> None:
        columns = np.concatenate([seen["columns"] for seen in scored])
        summed = np.concatenate([seen["summed"] for seen in scored])
        lengths = np.concatenate([seen["lengths"] for seen in scored])
        truncated = np.concatenate([seen["truncated"] for seen in scored])
        exact = logs.lengths_metrics(lengths, truncated) | logs.reward_metrics(
            columns, summed, self._names, record.metrics["dead_prompt_share"]
        )
        logs.collapse(self._metrics["train"], before, [len(seen["summed"]) for seen in scored], exact)
        logs.replace_last(self._logs["advantages"], record.advantages.tolist())

    def _report(self, record: StepRecord) -> None:
        metrics = self._metrics["train"]
        for name, value in record.metrics.items():
            metrics[f"rollwise/{name}"].append(value)
        metrics["rollwise/rollouts_spent"] = [float(self._spent)]
        if isinstance(self._rule, Observe):
            from rollwise.counterfactual import would_have_changed

            for name, value in would_have_changed(record, self.args.prior, self.args.waves, self.args.n_min).items():
                metrics[f"rollwise/would/{name}"].append(value)
        self._logs["extra"]["group_id"].extend(rollout.group_id for rollout in record.rollouts)
        self._logs["extra"]["group_size"].extend(record.counts[record.slots].tolist())
        self._logs["extra"]["outcome"].extend(
            None if rollout.outcome is Outcome.UNKNOWN else int(rollout.outcome is Outcome.SUCCESS)
            for rollout in record.rollouts
        )

    def _facts(self) -> dict[str, Any]:
        uniform = isinstance(self._rule, Uniform) and not self.args.force_waves
        waves = "1 wave" if uniform else "sequential" if self.args.sequential else f"{self.args.waves} waves"
        utility = "" if isinstance(self._rule, Uniform) else f"({self.args.utility})"
        return {
            "trl": trl.__version__,
            "prompts": self._prompts,
            "generations": self.num_generations,
            "budget": self._budget,
            "world": self.accelerator.num_processes,
            "allocator": self._rule.name + utility,
            "waves": waves,
            "n_min": self.args.n_min,
            "n_max": self.args.n_max or "none",
            "prior": self.args.prior,
            "weighting": self.args.weighting,
            "advantage": self.args.advantage or BY_SCALE[self.scale_rewards],
            "outcome": self._outcomes.source,
        }

    # -- checkpoints ------------------------------------------------------------------------------------------------

    @property
    def rollwise_folder(self) -> Path:
        """Where the ledger lives: `output_dir/rollwise`."""
        return Path(self.args.output_dir) / "rollwise"

    def _get_train_sampler(self, dataset: Any = None) -> EpochSampler:
        return EpochSampler(super()._get_train_sampler(dataset), lambda: int((self.state.epoch or 0.0) + 1e-9))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self.args.save_only_model:
            return
        folder = os.path.join(self._get_output_dir(trial=trial), f"checkpoint-{self.state.global_step}")
        state = {
            "step": self._step,
            "block": self._block,
            "spent": self._spent,
            "seen": sorted(self._outcomes.seen),
            "buffered": self._buffered_inputs,
        }
        save_state(folder, self.accelerator.process_index, self.accelerator.num_processes, state)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        state = load_state(checkpoint, self.accelerator.process_index, self.accelerator.num_processes)
        if state is None:
            self._step = self.state.global_step * self.args.gradient_accumulation_steps
            return
        self._step, self._block, self._spent = state["step"], state["block"], state["spent"]
        self._outcomes.seen = set(state["seen"])
        self._buffered_inputs = _to_device(state["buffered"], self.accelerator.device)


def _to_device(buffered: list[dict[str, Any]] | None, device: torch.device) -> list[dict[str, Any]] | None:
    if buffered is None:
        return None
    return [
        {key: value.to(device) if isinstance(value, torch.Tensor) else value for key, value in part.items()}
        for part in buffered
    ]
