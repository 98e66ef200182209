"""What is checked and printed before the first rollout."""

from __future__ import annotations

import contextlib
import copy
import traceback
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import trl

from rollwise.allocators.base import Allocator
from rollwise.allocators.uniform import Uniform
from rollwise.beliefs import FLAT, prior_source
from rollwise.imports import first_line
from rollwise.integrations.trl.config import BY_SCALE, RollwiseGRPOConfig
from rollwise.objectives import weighs_twice
from rollwise.solver import solve
from rollwise.step import Step
from rollwise.types import RollwiseError

UNSUPPORTED = "rollout_func, environments, images, streams without prompt_id_column"


def check_arguments(args: Any, reward_funcs: Any, others: Mapping[str, Any]) -> RollwiseGRPOConfig:
    """The trainer's arguments, as far as they can be checked without data or model; returns `args`.

    Raises:
        RollwiseError: naming the argument or setting.
    """
    if not isinstance(args, RollwiseGRPOConfig):
        raise RollwiseError("args: pass a RollwiseGRPOConfig (TRL's GRPOConfig has no allocation settings)")
    for name in ("rollout_func", "environment_factory"):
        if others.get(name) is not None:
            raise RollwiseError(f"{name}: not supported, it fixes which rollouts are made; leave it out")
    functions = len(reward_funcs) if isinstance(reward_funcs, list) else int(reward_funcs is not None)
    if not functions and args.labels == "verifier":
        raise RollwiseError("reward_funcs: none given; pass one reward function or a list of them")
    if args.reward_weights and not any(args.reward_weights) and args.labels == "verifier":
        raise RollwiseError("reward_weights: all are 0, so that nothing trains; give one that is not")
    if args.reward_weights is not None and len(args.reward_weights) != functions:
        raise RollwiseError(
            f"reward_weights: {len(args.reward_weights)} weights for {functions} reward functions; give one each"
        )
    return args


def check_batch(prompts: int, generations: int, adaptive: bool) -> None:
    """Raise `RollwiseError` where a step holds a single prompt and the rule is adaptive: nothing could be allocated."""
    if adaptive and prompts == 1:
        raise RollwiseError(
            f"allocator: a step holds 1 prompt x {generations} rollouts, so there is nothing to allocate; raise "
            "steps_per_generation (or gradient_accumulation_steps) to 4 or more, or set allocator='uniform'"
        )


def has_relative_positions(config: Any) -> bool:
    """Whether a model's scores do not depend on how far a prompt is padded: rotary or ALiBi positions, or none at all."""
    text = config.get_text_config()
    signs = ("rope_parameters", "rope_theta", "rope_scaling", "rotary_dim", "rotary_pct", "alibi")
    return any(getattr(text, sign, None) for sign in signs) or not hasattr(text, "max_position_embeddings")


def check_positions(needs: Collection[str], config: Any) -> None:
    """Raise `RollwiseError` where curators that let rollouts train again meet a model with absolute positions."""
    if "payload" in needs and not has_relative_positions(config):
        raise RollwiseError(
            "curators: rollouts that train again need a model whose scores do not depend on padding; this one has "
            "absolute positions"
        )


def rehearse(rule: Allocator, prompts: int, budget: int, args: RollwiseGRPOConfig) -> None:
    """Decide the first wave of a step of B prompts and N rollouts without generating anything.

    Impossible settings fail here and not in the middle of a run, and tables are solved before the first step. What a rule
    carries from step to step is as before.

    Raises:
        RollwiseError: naming the setting.
    """
    stateful: Any = rule if hasattr(rule, "state_dict") else None
    ids = [str(slot) for slot in range(prompts)]
    # texts are not read yet; before anything is observed a prediction is flat anyway
    prior = FLAT if args.prior == "gaussian_process" else prior_source(args.prior).for_step(ids)
    carried = copy.deepcopy(stateful.state_dict()) if stateful else None
    with blaming(rule, args.allocator):
        Step(
            ids,
            rule,
            budget,
            rng=np.random.default_rng(0),
            waves=args.waves,
            quantum=args.world_size,
            prior=prior,
            n_min=args.n_min,
            n_max=args.n_max,
        ).next_wave()
    if stateful:
        stateful.load_state_dict(carried)


@contextlib.contextmanager
def blaming(rule: Allocator, setting: str) -> Iterator[None]:
    """What a rule raises becomes one line with its address (where `setting` has one), and where it was raised."""
    try:
        yield
    except (RollwiseError, MemoryError):
        raise
    # a rule of the user's may raise anything
    except Exception as error:
        name = setting if ":" in setting else rule.name
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise RollwiseError(
            f"allocator: {name} raised {type(error).__name__}: {first_line(error)} "
            f"({Path(place.filename).name}, line {place.lineno})"
        ) from error


def small_step_warning(rule: Allocator, prompts: int, budget: int) -> list[str]:
    """One line for an adaptive step of fewer than four prompts: what it can gain, and what would raise that."""
    utility = getattr(rule, "utility", None)
    if utility is None or not 1 < prompts < 4:
        return []
    solution = solve(utility, prompts, budget)
    gain = solution.value / solution.uniform_value - 1 if solution.uniform_value else 0.0
    return [
        f"rollwise: only {prompts} prompts share a step: expected {utility.name} {gain:+.0%} over uniform at best; "
        "more prompts (steps_per_generation, gradient_accumulation_steps) give the rule more to choose from"
    ]


def summary_lines(args: RollwiseGRPOConfig, rule: Allocator, outcome: str) -> list[str]:
    """The start-up summary, one line each: what a step is, how it is allocated, what is not supported."""
    uniform, voted = isinstance(rule, Uniform), args.labels == "majority"
    measured = "gradient_norm" in getattr(rule, "needs", ())
    waves = f"{args.waves} waves"
    if args.sequential and not uniform:
        waves = "sequential"
    elif uniform and not args.force_waves:
        waves = "1 wave"
    utility = getattr(rule, "utility", None)
    advantage = args.advantage or BY_SCALE[args.scale_rewards]
    twice = weighs_twice(args.objective, advantage)
    return [
        f"rollwise: TRL {trl.__version__} | B = {args.generation_batch_size // args.num_generations} prompts x "
        f"G = {args.num_generations} rollouts = N = {args.generation_batch_size} per step, {args.world_size} process(es)",
        f"rollwise: allocator {rule.name}{f'({utility.name})' if utility else ''} | {waves} | n_min {args.n_min}, "
        f"n_max {args.n_max or 'none'} | prior {args.prior}",
        f"rollwise: weighting {args.weighting} | advantage {advantage} | objective {args.objective} | "
        f"outcome from {outcome}",
        *([f"rollwise: labels by the majority of answers ({args.answers}); reward functions do not train"] * voted),
        *(["rollwise: one more forward pass over all waves but the last, for gradient norms"] * measured),
        f"rollwise: not supported: {UNSUPPORTED}",
        *([f"rollwise: warning: {twice}"] if twice else []),
    ]
