"""The trainer of an arm, from a configuration and its inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rollwise.cli.adapter import make_adapter
from rollwise.cli.config import ArmSpec, RunConfig
from rollwise.cli.preflight import Inputs
from rollwise.cli.trainer_settings import make_config


def make_trainer(config: RunConfig, arm: ArmSpec, inputs: Inputs, run: Path) -> Any:
    """The trainer of one arm, writing into `run/<arm>`.

    Raises:
        RollwiseError: naming what cannot be used.
    """
    from rollwise.integrations.trl import RollwiseGRPOTrainer
    from rollwise.tasks.models import materialise

    model = inputs.model
    if inputs.gguf_file is not None:
        model = str(materialise(inputs.model, run / "_model", gguf_file=inputs.gguf_file))
    return RollwiseGRPOTrainer(
        model=model,
        reward_funcs=inputs.rewards,
        args=make_config(config, arm, run / arm.name),
        train_dataset=inputs.rows,
        outcome=inputs.outcome,
        peft_config=make_adapter(config.lora),
    )
