"""TIC-GRPO's ratio of whole completions (arXiv 2508.02833), by TRL's own sequence-level loss. Experimental.

    w = exp( sum over a completion's T tokens of  log pi - log pi_old ),      per completion   - min(w, 1 + epsilon_high) A

TRL's sequence level takes the mean over the T tokens instead of the sum. Given T times the log-probabilities, its mean is
the sum; the rest of its loss reads nothing else of them.
"""

from __future__ import annotations

from typing import Any

import torch
from trl import GRPOConfig

from rollwise.integrations.trl.dynamics import DynamicsTrainer
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

TRAJECTORY = "trajectory"
"""Value of `importance_sampling_level` beside TRL's `token` and `sequence`."""
LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo")
"""TRL's losses that read log-probabilities through the ratio alone."""


class TrajectoryTrainer(DynamicsTrainer):
    """`GRPOTrainer` with one level of importance sampling more."""

    _tokens: torch.Tensor | None = None
    """Tokens of each row (n, 1) while the loss is computed at the trajectory level."""

    def __init__(self, model: Any, reward_funcs: Any, args: GRPOConfig, *positional: Any, **kwargs: Any) -> None:
        """Check the level before anything is loaded.

        Raises:
            RollwiseError: an unknown level, or a setting that does not go with the trajectory level.
        """
        check_level(args)
        super().__init__(model, reward_funcs, args, *positional, **kwargs)
        if args.importance_sampling_level == TRAJECTORY:
            self.importance_sampling_level = "sequence"
            if self.accelerator.is_main_process:
                print("rollwise: warning: importance_sampling_level trajectory is experimental", flush=True)

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        if self.args.importance_sampling_level != TRAJECTORY:
            return super()._compute_loss(model, inputs)
        counted = inputs["completion_mask"] * inputs.get("tool_mask", 1)
        self._tokens = counted.sum(1, keepdim=True)
        old = inputs.get("old_per_token_logps")
        try:
            return super()._compute_loss(
                model, inputs if old is None else inputs | {"old_per_token_logps": old * self._tokens}
            )
        finally:
            self._tokens = None

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        logps, *rest = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        return (logps if self._tokens is None else logps * self._tokens, *rest)


def check_level(args: GRPOConfig) -> None:
    """Raise `RollwiseError` for a level that TRL would refuse only at the first loss, or that other settings contradict."""
    level = args.importance_sampling_level
    if level not in ("token", "sequence", TRAJECTORY):
        raise RollwiseError(
            f"importance_sampling_level: no {level!r}; {nearest(str(level), ('token', 'sequence', TRAJECTORY))}"
        )
    if level != TRAJECTORY:
        return
    wrong = {
        f"loss_type {args.loss_type}": args.loss_type not in LOSSES,
        f"beta {args.beta}": args.beta != 0.0,
        "off_policy_mask_threshold": args.off_policy_mask_threshold is not None,
        "use_liger_kernel": args.use_liger_kernel,
    }
    for name, clash in wrong.items():
        if clash:
            raise RollwiseError(
                f"importance_sampling_level: trajectory does not go with {name}; use loss_type {LOSSES[0]}, beta 0, and "
                "neither off_policy_mask_threshold nor use_liger_kernel"
            )
