"""Losses of the GRPO family on a batch of completions, whatever sizes its groups have.

    per token        -min(rho A, clip(rho, 1 - low, 1 + high) A),     rho = exp(logprob - logprob at generation)
    per completion   -min(w, 1 + high) A,                             w = product of its rho (TIC-GRPO)

The sums below run over all n completions of the step, those with advantage 0 included; these need no pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from rollwise.suggest import nearest
from rollwise.types import RollwiseError

Normaliser = Literal["sequence", "length", "token"]


@dataclass(frozen=True)
class Loss:
    """How token terms are averaged, and the clip range.

    `sequence`: mean over completions of their mean over tokens (GRPO, arXiv 2402.03300). `length`: sum over tokens by
    the longest allowed length, mean over completions (Dr.GRPO, 2503.20783). `token`: mean over all tokens of the step
    (DAPO, 2503.14476, which also clips higher). With `whole` the ratio is that of whole completions, clipped above alone
    (TIC-GRPO, 2508.02833; experimental): on policy its gradient is that of the sum of log-probabilities, not of their mean.
    """

    name: str
    normaliser: Normaliser
    low: float = 0.2
    high: float = 0.2
    whole: bool = False

    def scale(self, lengths: Tensor, longest: int) -> Tensor:
        """(n,) factor of each completion's sum over tokens, from all lengths (n,) of the step."""
        if self.normaliser == "sequence":
            return 1.0 / (lengths.clamp(min=1) * len(lengths))
        total = lengths.sum() if self.normaliser == "token" else torch.tensor(len(lengths) * longest)
        return (1.0 / total.clamp(min=1)).expand(len(lengths))

    def __call__(self, logprobs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, scale: Tensor) -> Tensor:
        """The loss (a scalar) of rows with log-probabilities now and at generation [n, T], advantages and scale [n]."""
        moved = logprobs - old
        gain = advantages[:, None]
        if self.whole:
            ratio = (moved * mask).sum(1, keepdim=True).exp()
            return -(ratio.clamp(max=1.0 + self.high) * gain * mask * scale[:, None]).sum()
        ratio = moved.exp()
        # with one update a step the ratio is 1 and clipping never acts
        clipped = ratio.clamp(1.0 - self.low, 1.0 + self.high)
        return -(torch.minimum(ratio * gain, clipped * gain) * mask * scale[:, None]).sum()


LOSSES = {
    "grpo": Loss("grpo", "sequence"),
    "dr_grpo": Loss("dr_grpo", "length"),
    "dapo": Loss("dapo", "token", high=0.28),
    "tic_grpo": Loss("tic_grpo", "sequence", whole=True),
}
ESTIMATORS = {"grpo": "grpo", "dr_grpo": "dr_grpo", "dapo": "grpo", "tic_grpo": "grpo"}
"""The advantage each loss was published with."""


def get_loss(name: str) -> Loss:
    """The loss of that name.

    Raises:
        RollwiseError: for an unknown name.
    """
    if name not in LOSSES:
        raise RollwiseError(f"loss: no {name!r}; {nearest(name, LOSSES)}")
    return LOSSES[name]
