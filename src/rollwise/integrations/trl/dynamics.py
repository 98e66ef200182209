"""What the updates of a run look like, logged as CoDaPO (arXiv 2606.07950) looks at GRPO: at no further pass of the model.

    rollwise/confidence          exp( mean over completions of the mean over their tokens of log pi )
    rollwise/mean_abs_advantage  mean over completions of |A|
    rollwise/update_weight       mean over all tokens of |A| (1 - pi), the length of the push on the token's own logit

Over the rows that the loss sees, all processes together; masked rows are left out. Not with Liger's fused loss, which
never has the log-probabilities of single tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from trl import GRPOTrainer


class DynamicsTrainer(GRPOTrainer):
    """`GRPOTrainer` that listens to the log-probabilities its loss is computed from."""

    _heard: torch.Tensor | None = None
    """Log-probabilities (n, T) of the loss at hand."""

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        self._heard = None
        loss = super()._compute_loss(model, inputs)
        if self.model.training and self._heard is not None:
            mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
            sums = self.accelerator.gather(dynamics_sums(self._heard, mask, inputs["advantages"])).view(-1, 5).sum(0)
            for name, value in read_sums(sums.tolist()).items():
                self._metrics["train"][f"rollwise/{name}"].append(value)
        self._heard = None
        return loss

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        found = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        self._heard = found[0].detach()
        return found


def dynamics_sums(logps: torch.Tensor, mask: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    """(5,) rows, tokens, and sums of mean log-probability, of |A| and of |A| (1 - pi), of rows (n, T) with advantages (n,)
    or (n, T)."""
    logps, mask = logps.double(), mask.double()
    size = (advantages if advantages.dim() == 2 else advantages[:, None]).double().abs().expand_as(logps)
    lengths = mask.sum(1)
    real, each = lengths > 0, lengths.clamp(min=1)
    means = [(values * mask).sum(1) / each for values in (logps, size)]
    push = (size * -torch.expm1(logps) * mask).sum()
    return torch.stack([real.sum().double(), lengths.sum(), *(mean.sum() for mean in means), push])


def read_sums(sums: list[float]) -> dict[str, float]:
    """The logged numbers from what `dynamics_sums` gave; none without rows."""
    rows, tokens, logprob, size, push = sums
    if not rows:
        return {}
    values = {"mean_abs_advantage": size / rows, "update_weight": push / tokens}
    return {"confidence": float(torch.tensor(logprob / rows).exp())} | values
