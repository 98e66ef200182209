"""Losses against numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch

from rollwise.lab.arms import parse_arm
from rollwise.lab.losses import ESTIMATORS, LOSSES, get_loss
from rollwise.types import RollwiseError

LENGTHS = torch.tensor([1, 2, 4])
MASK = torch.arange(4) < LENGTHS[:, None]
GAIN = torch.tensor([1.0, -2.0, 0.5])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("grpo", [1 / 3, 1 / 6, 1 / 12]), ("dr_grpo", [1 / 24] * 3), ("dapo", [1 / 7] * 3)],
)
def test_each_normaliser_weighs_a_token_as_published(name: str, expected: list[float]) -> None:
    assert LOSSES[name].scale(LENGTHS, longest=8).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("name", LOSSES)
def test_on_policy_the_gradient_is_advantage_times_scale(name: str) -> None:
    loss = LOSSES[name]
    logprobs = torch.full((3, 4), -0.7, requires_grad=True)
    scale = loss.scale(LENGTHS, longest=8)
    value = loss(logprobs, logprobs.detach(), GAIN, MASK, scale)
    value.backward()
    assert logprobs.grad is not None
    # a completion's ratio moves with the sum of its log-probabilities, and stands at each of its tokens
    times = LENGTHS if loss.whole else torch.ones(3)
    torch.testing.assert_close(logprobs.grad, -(GAIN * scale * times)[:, None] * MASK)
    assert float(value.detach()) == pytest.approx(-float((GAIN * scale * LENGTHS).sum()))


@pytest.mark.parametrize(("name", "high"), [("grpo", 1.2), ("dapo", 1.28)])
def test_a_ratio_beyond_the_clip_range_has_no_gradient(name: str, high: float) -> None:
    loss, ratios = LOSSES[name], torch.tensor([[high - 0.01, high + 0.01, 0.79, 0.81]])
    for sign, moves in ((1.0, [True, False, True, True]), (-1.0, [True, True, False, True])):
        logprobs = ratios.log().requires_grad_()
        mask, scale = torch.ones(1, 4, dtype=torch.bool), torch.ones(1)
        loss(logprobs, torch.zeros(1, 4), torch.tensor([sign]), mask, scale).backward()
        assert logprobs.grad is not None
        assert (logprobs.grad[0] != 0).tolist() == moves


@pytest.mark.parametrize("gain", [1.0, -1.0])
def test_the_ratio_of_whole_completions_is_clipped_above_alone(gain: float) -> None:
    """exp(.1 + .05) = 1.16 and exp(-.9) = .41 move, exp(.1 + .1) = 1.22 stands at 1.2, whatever the advantage's sign."""
    loss = LOSSES["tic_grpo"]
    logprobs = torch.tensor([[0.1, 0.05, 9.0], [-0.5, -0.4, 9.0], [0.1, 0.1, 9.0]], requires_grad=True)
    mask, scale = torch.tensor([[True, True, False]] * 3), torch.full((3,), 1 / 6)
    value = loss(logprobs, torch.zeros(3, 3), torch.full((3,), gain), mask, scale)
    value.backward()
    ratios = torch.tensor([0.15, -0.9]).exp().tolist()
    assert float(value.detach()) == pytest.approx(-gain * (sum(ratios) + 1.2) / 3)
    assert logprobs.grad is not None
    assert logprobs.grad[:, 0].tolist() == pytest.approx([-gain * ratios[0] / 3, -gain * ratios[1] / 3, 0.0])


def test_every_loss_has_the_advantage_it_was_published_with() -> None:
    assert ESTIMATORS == {"grpo": "grpo", "dr_grpo": "dr_grpo", "dapo": "grpo", "tic_grpo": "grpo"}


def test_the_published_method_of_that_ratio_trains_by_it() -> None:
    assert parse_arm("tic_grpo").loss == "tic_grpo"


def test_an_unknown_loss_names_the_nearest() -> None:
    with pytest.raises(RollwiseError, match="loss: no 'drgrpo'; did you mean 'dr_grpo'"):
        get_loss("drgrpo")
