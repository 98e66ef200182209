"""Confidence, advantage and token update weight of a step."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rollwise.lab.dynamics import step_dynamics
from rollwise.lab.model import Completions


def test_two_completions_by_hand() -> None:
    chances = torch.tensor([[0.5, 0.25, 1.0], [0.8, 1.0, 1.0]])
    lengths = torch.tensor([2, 1])
    written = torch.arange(3) < lengths[:, None]
    made = Completions(torch.ones(2, 3, dtype=torch.long), torch.where(written, chances.log(), 0.0), lengths)
    found = step_dynamics(made, np.array([2.0, -1.0]))
    assert found["confidence"] == pytest.approx(math.exp((math.log(0.5 * 0.25) / 2 + math.log(0.8)) / 2))
    assert found["mean_abs_advantage"] == pytest.approx(1.5)
    # three tokens were written: 2 (1 - 0.5), 2 (1 - 0.25), 1 (1 - 0.8)
    assert found["update_weight"] == pytest.approx((1.0 + 1.5 + 0.2) / 3)


def test_a_dead_step_pushes_nothing() -> None:
    made = Completions(torch.ones(1, 2, dtype=torch.long), torch.full((1, 2), -0.5), torch.tensor([2]))
    found = step_dynamics(made, np.zeros(1))
    assert found["mean_abs_advantage"] == found["update_weight"] == 0.0
    assert found["confidence"] == pytest.approx(math.exp(-0.5))
