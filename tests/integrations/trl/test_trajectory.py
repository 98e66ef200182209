"""The ratio of whole completions, through the real trainer call: its gradient, its values against brute force, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from rollwise.presets import PRESETS
from rollwise.types import RollwiseError
from tests.integrations.trl.support import RecordedRollwise, rollwise, train

OPTIONS = PRESETS["tic_grpo"].trainer


class Watched(RecordedRollwise):
    """Works every loss out anew, completion by completion."""

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        loss = super()._compute_loss(model, inputs)
        mask = inputs["completion_mask"]
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
        seen = torch.cat([inputs["prompt_mask"], mask], 1)
        with torch.no_grad():
            now = self._get_per_token_logps_and_entropies(model, ids, seen, mask.size(1))[0]
        ratios = [
            float(((new - old)[held.bool()]).sum().exp())
            for new, old, held in zip(now, inputs.get("old_per_token_logps", now), mask, strict=True)
        ]
        terms = [min(w, 1.2) * a for w, a in zip(ratios, inputs["advantages"].tolist(), strict=True)]
        expected = -sum(terms) / len(terms) / self.current_gradient_accumulation_steps
        self.seen = [*getattr(self, "seen", []), *ratios]
        assert float(loss.detach()) == pytest.approx(expected, abs=2e-5)
        return loss


def test_the_loss_is_minus_the_mean_of_the_bounded_ratio_times_the_advantage(model: str, tmp_path: Path) -> None:
    shape = {"num_iterations": 2, "gradient_accumulation_steps": 1, "per_device_train_batch_size": 16, "max_steps": 4}
    config = rollwise(tmp_path, **shape, **OPTIONS, optim="sgd", learning_rate=0.5)
    seen = train(Watched, config, model)["trainer"].seen
    assert min(seen) < 0.8 and max(seen) > 1.25, "ratios on both sides of a clip range, of which only one bounds"


def test_on_policy_its_gradient_is_that_of_the_summed_log_probability(model: str, tmp_path: Path) -> None:
    """Dr.GRPO's loss is that sum by the longest length, so the same advantages give gradients in that proportion."""
    shape: dict[str, Any] = {"max_steps": 1, "max_grad_norm": 0.0, "allocator": "uniform", "scale_rewards": "group"}
    summed = train(RecordedRollwise, rollwise(tmp_path / "tic", **shape | OPTIONS), model)
    by_length = train(RecordedRollwise, rollwise(tmp_path / "dr", **shape, loss_type="dr_grpo"), model)
    for whole, part in zip(summed["gradients"][0], by_length["gradients"][0], strict=True):
        torch.testing.assert_close(whole, part * 6, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"importance_sampling_level": "trajectries"}, "no 'trajectries'; did you mean 'trajectory'"),
        ({"loss_type": "vespo"}, "trajectory does not go with loss_type vespo; use loss_type grpo"),
        ({"beta": 0.1}, "trajectory does not go with beta 0.1"),
        ({"off_policy_mask_threshold": 0.5}, "trajectory does not go with off_policy_mask_threshold"),
    ],
    ids=["word", "loss", "beta", "mask"],
)
def test_what_does_not_go_with_it_is_refused(
    model: str, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(RollwiseError, match=f"^importance_sampling_level: {message}"):
        train(RecordedRollwise, rollwise(tmp_path, **OPTIONS | changes), model)


def test_the_start_says_that_it_is_experimental(model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    train(RecordedRollwise, rollwise(tmp_path, max_steps=1, **OPTIONS), model)
    assert "importance_sampling_level trajectory is experimental" in capfd.readouterr().out
