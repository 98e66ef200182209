"""`RollwiseGRPOConfig`: every field of TRL's `GRPOConfig`, and how rollouts are allocated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trl import GRPOConfig

from rollwise.advantages import get_advantage
from rollwise.allocators import get_allocator
from rollwise.beliefs import EmpiricalPrior, FixedPrior, prior_source
from rollwise.beliefs.source import DISCOUNT
from rollwise.objectives import get_objective
from rollwise.tasks.answers import read_answers
from rollwise.types import RollwiseError
from rollwise.utilities import get_utility
from rollwise.votes import check_labels
from rollwise.weighting import check_weighting

BY_SCALE = {"group": "grpo", "batch": "grpo_batch", "none": "dr_grpo"}
"""TRL's `scale_rewards` -> the estimator that computes the same advantages for groups of unequal size."""


@dataclass
class RollwiseGRPOConfig(GRPOConfig):
    """Settings of `RollwiseGRPOTrainer`.

    A step is one generation block of TRL: N = `generation_batch_size` rollouts for B = N / `num_generations` prompts.
    N stays exactly what TRL would spend; only how it is divided over the B prompts changes.
    """

    allocator: str = field(
        default="observe",
        metadata={"help": "Rule that divides a step's rollouts: observe (trains like uniform and reports what the adaptive "
                          "rules would have changed), uniform, adaroll, another name, or package.module:Class."},
    )  # fmt: skip
    utility: str = field(
        default="min_variance",
        metadata={"help": "What adaroll maximises: min_variance, min_squared_advantage, sum_max_reward, min_max_reward, "
                          "sum_variance or sum_squared_advantage."},
    )  # fmt: skip
    advantage_form: str = field(
        default="raw",
        metadata={"help": "Advantage inside the two squared-advantage utilities: raw or normalised."},
    )
    waves: int = field(
        default=4,
        metadata={"help": "Decisions per step; rollouts of one wave are generated together."},
    )
    sequential: bool = field(
        default=False,
        metadata={"help": "One rollout per block and decision, the published form; slow, `waves` is then ignored."},
    )
    n_min: int = field(default=2, metadata={"help": "Fewest rollouts per prompt; 0 is the published form."})
    n_max: int | None = field(default=None, metadata={"help": "Most rollouts per prompt; none for no cap."})
    prior: str = field(
        default="1,1",
        metadata={"help": "Belief over a prompt's success probability at the opening of a step: a Beta a,b; empirical "
                          "(fitted to recent groups); carried (each prompt's own past, discounted); or gaussian_process "
                          "(predicted from prompts that read alike)."},
    )  # fmt: skip
    prior_settings: dict[str, Any] | None = field(
        default=None,
        metadata={"help": "Settings of prior='gaussian_process': own, noise, eps, limit, and embedding, the address "
                          "package.module:function of what makes vectors (n, d) of n texts (default: TF-IDF)."},
    )  # fmt: skip
    prior_discount: float = field(
        default=DISCOUNT,
        metadata={"help": "Share of a prompt's evidence that survives from visit to visit under prior='carried'."},
    )
    objective: str = field(
        default="none",
        metadata={"help": "What is ascended: none (as published), mean, log, pass@k, or module:function, a weight curve "
                          "over success rates; weighs prompts by the beliefs held at the opening of a step."},
    )  # fmt: skip
    weighting: str = field(
        default="per_rollout",
        metadata={
            "help": "per_rollout: a prompt counts in proportion to its rollouts; per_prompt: prompts count alike."
        },
    )
    advantage: str | None = field(
        default=None,
        metadata={"help": "Advantage estimator: grpo, grpo_batch or dr_grpo; by default what scale_rewards says."},
    )
    outcome: str | None = field(
        default=None,
        metadata={"help": "What counts as success: the name of one reward function, or module:function with the signature "
                          "of a reward function returning 0, 1 or None. Needed where rewards take more than two values."},
    )  # fmt: skip
    outcome_threshold: float | None = field(
        default=None,
        metadata={
            "help": "A reward at or above it is a success (of the `outcome` function, else of the summed reward)."
        },
    )
    labels: str = field(
        default="verifier",
        metadata={"help": "Where outcomes come from: the verifier (reward functions), or the majority of the answers to a "
                          "prompt; agreement with it then trains, and reward functions are not needed, only logged."},
    )  # fmt: skip
    answers: str = field(
        default="marked",
        metadata={"help": "How a vote finds the answer of a completion: marked (boxed, after 'the answer is', else the "
                          "last number), whole, last_line, last_number, boxed, ... or package.module:function."},
    )  # fmt: skip
    prompt_id_column: str | None = field(
        default=None,
        metadata={"help": "Column that names a prompt; by default its row number. Required for streamed data sets."},
    )
    block_prompts: int | None = field(
        default=None,
        metadata={"help": "Prompts per exactly solved block where a step is too large for one table (default 4)."},
    )
    allocator_settings: dict[str, Any] | None = field(
        default=None, metadata={"help": "Settings of the rule itself, such as {form: hw} of dars."}
    )
    selector: str | None = field(
        default=None,
        metadata={"help": "Which prompts enter a step: cero, mopps, greso, resampling, passes or package.module:Class; by "
                          "default TRL's sampler."},
    )  # fmt: skip
    selector_settings: dict[str, Any] | None = field(
        default=None, metadata={"help": "Settings of the selector, such as {candidates: 4} of mopps."}
    )
    curators: list[str] | None = field(
        default=None,
        metadata={"help": "Which rollouts train, with what weight, applied in order: replay, reuse, pods, aero, balanced, "
                          "codapo, dynamic, live or package.module:Class."},
    )  # fmt: skip
    curator_settings: dict[str, Any] | None = field(
        default=None, metadata={"help": "Settings by curator, such as {replay: {share: 0.3}}."}
    )
    force_waves: bool = field(
        default=False,
        metadata={"help": "Take the wave-and-merge path even where stock generation would do (uniform); for tests."},
    )

    def __post_init__(self) -> None:
        """Check every setting that can be checked without data.

        Raises:
            RollwiseError: naming the setting and a valid value.
        """
        check_finite(vars(self))
        super().__post_init__()
        self._check_prior()
        get_objective(self.objective)
        get_utility(self.utility, self.advantage_form)
        check_weighting(self.weighting)
        check_labels(self.labels)
        read_answers(self.answers)
        if self.labels == "majority" and self.multi_objective_aggregation == "normalize_then_sum":
            raise RollwiseError(
                "multi_objective_aggregation: normalize_then_sum is for several rewards, and labels='majority' makes one; "
                "use sum_then_normalize"
            )
        if self.advantage is not None:
            get_advantage(self.advantage)
        if self.waves < 1:
            raise RollwiseError(f"waves: {self.waves}; give 1 or more")
        if self.remove_unused_columns:
            raise RollwiseError("remove_unused_columns: must be False, or prompts lose their ids")
        get_allocator(
            self.allocator,
            self.allocator_settings,
            utility=self.utility,
            advantage_form=self.advantage_form,
            sequential=self.sequential,
            block_prompts=self.block_prompts,
        )

    def _check_prior(self) -> None:
        source = prior_source(self.prior, discount=self.prior_discount, settings=self.prior_settings)
        if self.allocator == "vip" and isinstance(source, (FixedPrior, EmpiricalPrior)):
            raise RollwiseError(
                f"prior: {self.prior} is one belief for all prompts, from which vip allocates nothing; set "
                "gaussian_process (method vip) or carried (method vip_beta)"
            )

    @property
    def process_settings(self) -> dict[str, Any]:
        """`prior_settings` without the embedding, which is made beforehand."""
        return {key: value for key, value in (self.prior_settings or {}).items() if key != "embedding"}


def check_finite(settings: Mapping[str, Any]) -> None:
    """Raise `RollwiseError` naming the first setting that is, or holds, NaN or an infinity, or is out of range.

    TRL takes such numbers and trains on NaN losses.
    """
    for name, value in settings.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise RollwiseError(f"{name}: {value}; give a finite number")
        if isinstance(value, (list, tuple)) and any(isinstance(x, float) and not math.isfinite(x) for x in value):
            raise RollwiseError(f"{name}: {value}; give finite numbers")
    if isinstance(settings["temperature"], (int, float)) and settings["temperature"] <= 0:
        raise RollwiseError(f"temperature: {settings['temperature']}; give a number above 0, such as 1.0")
    longest = settings["max_completion_length"]
    if isinstance(longest, int) and longest < 1:
        raise RollwiseError(f"max_completion_length: {longest}; give 1 or more")
