"""Opening beliefs of a run in the lab, those that need the model or the true rates included."""

from __future__ import annotations

import numpy as np
import torch

from rollwise.beliefs import PriorSource, prior_source
from rollwise.beliefs.gaussian_process import GaussianProcessPrior
from rollwise.lab.arms import Arm
from rollwise.lab.model import TinyLM
from rollwise.lab.pools import Problems
from rollwise.types import FloatArray


def open_beliefs(arm: Arm, pool: Problems, model: TinyLM) -> PriorSource | None:
    """Where the arm's opening beliefs come from; None for the oracle's. `model` is the warm one.

    The Gaussian process tells prompts apart by how the warm model represents them (`TinyLM.represent`).
    """
    if arm.prior == "oracle":
        return None
    if arm.prior == "gaussian_process":
        points = model.represent(torch.as_tensor(pool.prompts)).double().numpy()
        return GaussianProcessPrior(dict(zip(pool.ids, points, strict=True)))
    return prior_source(arm.prior, discount=arm.discount)


def oracle_beliefs(rates: FloatArray, strength: float) -> FloatArray:
    """(B, 2) Beta(1, 1) after `strength` observations that came out exactly at the true rates (B,)."""
    return 1.0 + strength * np.stack([rates, 1.0 - rates], axis=1)
