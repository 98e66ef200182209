"""`RollwiseGRPOTrainer`: TRL's `GRPOTrainer`, whose steps divide their rollouts where they teach most.

Two methods are overridden, both by calling the parent: `_generate_and_score_completions` runs the parent once per wave
on the rows the step decides, `_calculate_rewards` listens to what the parent scored. Everything else here keeps ids,
logs and checkpoints true. No allocation mathematics lives in this package.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from trl import GRPOTrainer

from rollwise.advantages import Advantage
from rollwise.allocators import get_allocator
from rollwise.allocators.base import Allocator
from rollwise.allocators.uniform import Observe, Uniform
from rollwise.beliefs import prior_source
from rollwise.counterfactual import would_have_changed
from rollwise.integrations.trl import logs
from rollwise.integrations.trl.aggregation import NormaliseThenSum, sum_rewards
from rollwise.integrations.trl.checkpoint import EpochSampler, as_arrays, as_tensors, load_state, save_state, to_device
from rollwise.integrations.trl.config import BY_SCALE, RollwiseGRPOConfig
from rollwise.integrations.trl.merge import merge_waves
from rollwise.integrations.trl.rewards import OutcomeReader, checked
from rollwise.integrations.trl.scores import Scores, report
from rollwise.integrations.trl.startup import (
    INDEX,
    check_batch,
    has_relative_positions,
    rehearse,
    small_step_warning,
    summary_lines,
    with_index,
)
from rollwise.ledger import Ledger
from rollwise.step import Step, Wave
from rollwise.types import FloatArray, RollwiseError, StepRecord

ID = "rollwise_id"
"""Key a row's id travels under between processes."""


class RollwiseGRPOTrainer(GRPOTrainer):
    """`GRPOTrainer` with adaptive rollout allocation; constructed and used exactly like it.

    Two arguments more: `outcome`, a callable with a reward function's signature that returns 0, 1 or None, and
    `allocator`, a rule object in place of the named one. Everything else is in `RollwiseGRPOConfig`.
    """

    num_generations: int
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
        self._prior = prior_source(args.prior, discount=args.prior_discount)
        self._block = 0
        self._spent = 0
        self._scores: Scores
        self._ledger: Ledger | None = None
        self.last_record: StepRecord | None = None
        """The `StepRecord` of the last generation block, for callbacks and inspection."""
        if self.accelerator.is_main_process:
            warning = small_step_warning(self._rule, self._prompts, self._budget)
            print("\n".join(summary_lines(args, self._rule, self._outcomes.source) + warning), flush=True)

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
        width = None if uniform else self._prompt_width(rows)
        parts: list[dict[str, Any]] = []
        placed: list[np.ndarray] = []
        scored: list[Scores] = []
        before = {name: len(values) for name, values in self._metrics["train"].items()}
        stock = False
        while wave := step.next_wave():
            self._agree(step)
            mine = self._share(wave)
            local = [copy.copy(rows[wave.rollouts[k].prompt_id]) for k in mine]
            stock = self._is_stock_layout(step, wave)
            parts.append(
                self._run_wave(local, self.num_generations, None) if stock else self._run_wave(local, 1, width)
            )
            placed.append(mine + sum(map(len, scored)))
            report(step, wave, self._scores)
            scored.append(self._scores)
        scores = Scores.join(scored)
        record = self._close(step, scores)
        output = parts[0]
        if not stock:
            index = np.concatenate(placed)
            order = np.argsort(record.slots[index], kind="stable")
            output = merge_waves(parts, torch.from_numpy(order), self._tokenizer.pad_token_id)
            output["advantages"] = torch.as_tensor(
                record.advantages[index][order], dtype=torch.float32, device=self.accelerator.device
            )
            logs.rewrite(self._metrics["train"], before, list(map(len, scored)), scores, self._names, record)
            logs.replace_last(self._logs["advantages"], record.advantages.tolist())
        self._report(record)
        return output

    def _calculate_rewards(
        self, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], completion_ids_list: list[Any]
    ) -> torch.Tensor:
        """The parent's rewards (n over all processes, F), kept aside with outcomes, lengths and end flags."""
        columns = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        if self.model.training:
            self._scores = self._score(columns, inputs, prompts, completions, completion_ids_list)
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
            prior=self._prior.for_step(list(dict.fromkeys(ids))),
            n_min=self.args.n_min,
            n_max=self.args.n_max,
            advantage=self.args.advantage or BY_SCALE[self.scale_rewards],
            weighting=self.args.weighting,
            objective=self.args.objective,
            ledger=self._ledger,
        )

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
        )

    def _share(self, wave: Wave) -> np.ndarray:
        """Which of the wave's rollouts this process makes: an equal, contiguous part."""
        each = len(wave.rollouts) // self.accelerator.num_processes
        return np.arange(each) + each * self.accelerator.process_index

    def _close(self, step: Step, scores: Scores) -> StepRecord:
        estimator: Advantage | None = None
        if self.multi_objective_aggregation == "normalize_then_sum" and self.args.advantage is None:
            estimator = NormaliseThenSum(scores.columns, self._weights())
        record = step.close(advantage=estimator)
        self._prior.observe(record.prompt_ids, record.successes, record.failures)
        self._block += 1
        self._spent += int(record.counts.sum())
        self.last_record = record
        return record

    def _score(
        self, columns: torch.Tensor, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], ids: Any
    ) -> Scores:
        device = self.accelerator.device
        # TRL 1.14 knows a single end token and has no list of them
        ends = {*getattr(self, "eos_token_ids", [self._tokenizer.eos_token_id]), self._tokenizer.pad_token_id}
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
        outcomes = tuple(self._outcomes.read(values, summed, own))
        return Scores(values, summed, outcomes, lengths.astype(np.float64), truncated.astype(bool))

    def _weights(self) -> FloatArray:
        return self.reward_weights.double().cpu().numpy()

    # -- identity and agreement -------------------------------------------------------------------------------------

    @property
    def rollouts_spent(self) -> int:
        """Rollouts generated for training so far, counted as they are paid for."""
        return self._spent

    def _id_of(self, row: dict[str, Any]) -> str:
        found = row[self.args.prompt_id_column or INDEX]
        if found is None:
            raise RollwiseError(f"prompt_id_column: a row has no {self.args.prompt_id_column!r}; name every prompt")
        return str(found)

    def _rows_by_id(self, ids: list[str], rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Every prompt's row on every process: any process may be asked to generate for any prompt of the step."""
        own: dict[str, dict[str, Any]] = {}
        for key, row in zip(ids, rows, strict=True):
            own.setdefault(f"{key}\x1f{row['prompt']}", row | {ID: key})
        found: dict[str, dict[str, Any]] = {}
        for row in gather_object(list(own.values())):
            key = row.pop(ID)
            if found.setdefault(key, row)["prompt"] != row["prompt"]:
                raise RollwiseError(
                    f"prompt_id_column: two different prompts are called {key!r}; give each prompt an id of its own"
                )
        return found

    def _agree(self, step: Step) -> None:
        """Compare the processes' views; a difference would send them different ways and hang the run."""
        digests = gather_object([step.view.digest()])
        if len(set(digests)) > 1:
            raise RollwiseError("the processes disagree on the step's outcomes; make reward functions deterministic")

    # -- logs -------------------------------------------------------------------------------------------------------

    def _report(self, record: StepRecord) -> None:
        metrics = self._metrics["train"]
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

    def _get_train_sampler(self, dataset: Any = None) -> EpochSampler:
        return EpochSampler(super()._get_train_sampler(dataset), lambda: int((self.state.epoch or 0.0) + 1e-9))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        # before the parent's files: a checkpoint that lacks ours must not look complete
        if not self.args.save_only_model:
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            state = {
                "step": self._step,
                "block": self._block,
                "spent": self._spent,
                "seen": sorted(self._outcomes.seen),
                "prior": as_tensors(self._prior.state_dict()),
                "buffered": self._buffered_inputs,
            }
            save_state(folder, self.accelerator.process_index, self.accelerator.num_processes, state)
        super()._save_checkpoint(model, trial)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        state = load_state(checkpoint, self.accelerator.process_index, self.accelerator.num_processes)
        if state is None:
            print(f"rollwise: {checkpoint} was not saved by rollwise: its open block is generated again", flush=True)
            self._step = self.state.global_step * self.args.gradient_accumulation_steps
            every = self.args.steps_per_generation * self.num_iterations
            self._block = -(-self._step // every)
            self._spent = self._block * self._budget
            return
        self._step, self._block, self._spent = state["step"], state["block"], state["spent"]
        self._outcomes.seen = set(state["seen"])
        self._prior.load_state_dict(as_arrays(state["prior"]))
        self._buffered_inputs = to_device(state["buffered"], self.accelerator.device)
