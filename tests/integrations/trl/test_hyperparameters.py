"""What the settings say of an optimizer counts on resume, not what its checkpoint says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import get_scheduler

from rollwise.integrations.trl.optimizer import Hyperparameters


def made(rate: float = 0.1, steps: int = 10, kind: str = "linear", **changes: Any) -> tuple[Any, Any]:
    """AdamW on one weight, and its schedule."""
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], lr=rate, **changes)
    return optimizer, get_scheduler(kind, optimizer, num_warmup_steps=0, num_training_steps=steps)


def after(count: int, **settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """States of optimizer and schedule after so many steps."""
    optimizer, schedule = made(**settings)
    for _ in range(count):
        optimizer.param_groups[0]["params"][0].grad = torch.ones(1)
        optimizer.step()
        schedule.step()
    return optimizer.state_dict(), schedule.state_dict()


def resumed(saved: tuple[dict[str, Any], dict[str, Any]], **settings: Any) -> tuple[Any, Any]:
    optimizer, schedule = made(**settings)
    set_now = Hyperparameters(optimizer, schedule)
    optimizer.load_state_dict(saved[0])
    schedule.load_state_dict(saved[1])
    set_now.apply(optimizer, schedule)
    return optimizer, schedule


@pytest.mark.parametrize("kind", ["linear", "cosine", "constant", "inverse_sqrt"])
def test_without_a_change_nothing_changes(kind: str) -> None:
    saved = after(3, kind=kind)
    optimizer, schedule = resumed(saved, kind=kind)
    assert optimizer.state_dict()["param_groups"] == saved[0]["param_groups"]
    assert schedule.state_dict() == saved[1]


def test_another_rate_length_and_decay_take_effect_and_moments_stay() -> None:
    saved = after(3)
    optimizer, schedule = resumed(saved, rate=0.5, steps=20, weight_decay=0.3)
    group = optimizer.param_groups[0]
    assert group["lr"] == schedule.get_last_lr()[0] == pytest.approx(0.5 * 17 / 20)
    assert group["weight_decay"] == 0.3
    assert optimizer.state_dict()["state"][0]["exp_avg"] == saved[0]["state"][0]["exp_avg"]
    optimizer.step()
    schedule.step()
    assert group["lr"] == pytest.approx(0.5 * 16 / 20)


def test_a_schedule_that_follows_the_loss_keeps_its_rate() -> None:
    optimizer, schedule = made(kind="reduce_lr_on_plateau")
    optimizer.param_groups[0]["lr"] = 0.01
    saved = optimizer.state_dict(), schedule.state_dict()
    assert resumed(saved, kind="reduce_lr_on_plateau")[0].param_groups[0]["lr"] == 0.01
