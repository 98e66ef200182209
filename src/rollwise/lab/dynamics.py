"""What the updates of a step look like, as CoDaPO (arXiv 2606.07950) looks at GRPO: confidence, advantage, token weight.

    confidence          exp( mean over completions of the mean over their tokens of log pi )
    mean_abs_advantage  mean over completions of |A|
    update_weight       mean over all tokens of |A| (1 - pi), the length of the push on the token's own logit

Over training the first rises (confidence inflation) and the others fall (advantage contraction).
"""

from __future__ import annotations

import torch

from rollwise.lab.model import Completions
from rollwise.types import FloatArray

DYNAMICS = ("confidence", "mean_abs_advantage", "update_weight")


def step_dynamics(made: Completions, advantages: FloatArray) -> dict[str, float]:
    """`DYNAMICS` of a step's completions [n, T] and their advantages (n,), all weights included."""
    lengths = made.lengths.clamp(min=1)
    written = torch.arange(made.logprobs.shape[1]) < made.lengths[:, None]
    size = torch.as_tensor(advantages).abs()
    push = (size[:, None] * (1.0 - made.logprobs.double().exp()) * written).sum() / written.sum().clamp(min=1)
    return {
        "confidence": float((made.logprobs.sum(1).double() / lengths).mean().exp()),
        "mean_abs_advantage": float(size.mean()),
        "update_weight": float(push),
    }
