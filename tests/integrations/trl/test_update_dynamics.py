"""What updates look like: the same numbers as the lab's, whatever the rows are split into."""

from __future__ import annotations

import pytest
import torch

from rollwise.integrations.trl.dynamics import dynamics_sums, read_sums
from rollwise.lab.dynamics import step_dynamics
from rollwise.lab.model import Completions


def test_numbers_are_those_of_the_lab_and_masked_rows_do_not_count() -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor([3, 1, 4, 2])
    mask = (torch.arange(4) < lengths[:, None]).long()
    logps = -torch.rand(4, 4, generator=generator) * 2
    advantages = torch.tensor([1.0, -0.5, 0.0, 2.0])
    expected = step_dynamics(Completions(mask, logps * mask, lengths), advantages.numpy())

    # two processes, the second of them with a masked row
    padded = torch.cat([mask[2:], torch.zeros(1, 4, dtype=torch.long)])
    rows, sizes = torch.cat([logps[2:], -torch.ones(1, 4)]), torch.cat([advantages[2:], torch.tensor([9.0])])
    sums = dynamics_sums(logps[:2], mask[:2], advantages[:2]) + dynamics_sums(rows, padded, sizes)
    assert read_sums(sums.tolist()) == pytest.approx(expected)
    by_token = advantages[:, None].expand(4, 4)
    assert read_sums(dynamics_sums(logps, mask, by_token).tolist()) == pytest.approx(expected)


def test_masked_rows_alone_say_nothing() -> None:
    assert read_sums(dynamics_sums(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(2)).tolist()) == {}
