"""The settings of an optimizer on resume: those of the run that goes on, not those its checkpoint was saved with.

torch and transformers load learning rate and the like from the checkpoint, so that a changed setting would have no effect
and nothing would say so.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR

KEPT = ("betas", "eps", "weight_decay", "momentum")
"""Settings that optimizers keep among their state, beside the learning rate; what else stands there may be state."""


class Hyperparameters:
    """What the settings say of an optimizer and its schedule, taken down before a checkpoint is loaded over them."""

    def __init__(self, optimizer: Any, scheduler: Any) -> None:
        self._groups = [
            {name: group[name] for name in KEPT if name in group} for group in getattr(optimizer, "param_groups", [])
        ]
        self._rates = list(scheduler.base_lrs) if isinstance(scheduler, LambdaLR) else None

    def apply(self, optimizer: Any, scheduler: Any) -> None:
        """Put them in place again; where none has changed, this changes nothing.

        rate at step t = base rate x schedule(t), both as set now; a schedule that follows the loss keeps its rates.
        """
        groups = getattr(optimizer, "param_groups", [])
        for group, kept in zip(groups, self._groups):
            group.update(kept)
        if self._rates is None:
            return
        scheduler.base_lrs = self._rates
        rates = [base * factor(scheduler.last_epoch) for base, factor in zip(self._rates, scheduler.lr_lambdas)]
        for group, base, rate in zip(groups, self._rates, rates):
            group["initial_lr"] = base
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        scheduler._last_lr = rates
