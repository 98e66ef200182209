"""A trainer built from a model without weights: what an arm would refuse when it starts is refused before.

The trainer is the real one, so that nothing it checks has to be known here; only the weights stay on the meta device.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any

from rollwise.cli.adapter import make_adapter
from rollwise.cli.config import ArmSpec, RunConfig
from rollwise.cli.preflight import Inputs, reading_options
from rollwise.cli.trainer_settings import first_line, make_config
from rollwise.cli.values import short
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

LEFT_OUT = {"use_vllm": False, "use_cpu": True, "bf16": False, "fp16": False, "push_to_hub": False}
"""What would start an engine or occupy a GPU; `make_config` has checked the values themselves."""


UNTRIED = "the trainer was not built beforehand: this model cannot be built without its weights"


def rehearse_arm(config: RunConfig, arm: ArmSpec, inputs: Inputs) -> list[str]:
    """Build the arm's trainer and take its first batch of prompts; nothing is generated, and nothing stays on the disk.

    Returns what could not be tried, and what the trainer warns of.

    Raises:
        RollwiseError: for what the trainer refuses, in its words.
    """
    make_config(config, arm, Path("runs") / arm.name)
    check_packages(config)
    adapter = make_adapter(config.lora)
    try:
        model, tokenizer = hollow_model(config, inputs)
    except (NotImplementedError, RuntimeError) as error:
        if not lacks_weights(error):
            raise RollwiseError(f"model: {inputs.model} cannot be built ({first_line(error)[:200]})") from error
        return [UNTRIED]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        changes = {"processing_class": tokenizer, "peft_config": adapter}
        try:
            trainer = hollow_trainer()(
                model=model,
                reward_funcs=list(inputs.rewards),
                args=make_config(config, arm, Path(folder), **LEFT_OUT),
                train_dataset=inputs.rows,
                outcome=inputs.outcome,
                **changes,
            )
            next(iter(trainer.get_train_dataloader()))
        except RollwiseError:
            raise
        except MemoryError:
            raise RollwiseError(
                f"rollouts_per_prompt: {config.budget:,} rollouts a step of arm {arm.name} need more memory than there is; "
                "give fewer, or set method.n_max"
            ) from None
        # TRL, transformers and peft refuse settings by ValueError, TypeError, ImportError and others.
        except Exception as error:
            if lacks_weights(error):
                return [UNTRIED]
            raise RollwiseError(f"{'lora' if about_adapter(error) else 'trainer'}: {first_line(error)}") from error
    return list(trainer.notes)


def lacks_weights(error: Exception) -> bool:
    """Whether an error is about weights that a model without weights does not have, not about the run."""
    return "meta" in str(error)


def hollow_model(config: RunConfig, inputs: Inputs) -> tuple[Any, Any]:
    """The model of a run without its weights, and its tokenizer.

    Raises:
        RollwiseError: for a model that is no causal language model.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from rollwise.tasks.models import DTYPES

    options = reading_options(inputs.model, inputs.gguf_file, bool(config.trainer.get("trust_remote_code")))
    found = AutoConfig.from_pretrained(inputs.model, **options)
    given = config.trainer.get("model_init_kwargs")
    extra = {key: given[key] for key in ("attn_implementation",) if isinstance(given, dict) and key in given}
    if isinstance(given, dict) and given.get("dtype", "auto") not in DTYPES:
        raise RollwiseError(
            f"trainer.model_init_kwargs.dtype: {short(given['dtype'])}; {nearest(str(given['dtype']), DTYPES)}"
        )
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(found, **extra)
    except (ValueError, ImportError) as error:
        about = "trainer.model_init_kwargs" if extra else "model"
        raise RollwiseError(f"{about}: {inputs.model} cannot be built ({first_line(error)[:200]})") from None
    tokenizer = AutoTokenizer.from_pretrained(inputs.model, padding_side="left", **options)
    return model, tokenizer


def hollow_trainer() -> type:
    """`RollwiseGRPOTrainer` that leaves its model where it is, and loads no second one."""
    from rollwise.integrations.trl import RollwiseGRPOTrainer

    class HollowTrainer(RollwiseGRPOTrainer):
        def _move_model_to_device(self, model: Any, device: Any) -> None:
            """There are no weights to move."""

        @property
        def beta(self) -> float:
            """0 while the trainer decides whether to load a model for reference, then what was given."""
            return self.args.beta if hasattr(self, "ref_model") else 0.0

        @beta.setter
        def beta(self, given: float) -> None:
            """It stands in the arguments."""

    return HollowTrainer


def check_packages(config: RunConfig) -> None:
    """Raise `RollwiseError` where a `trainer` field needs a package that is not installed."""
    from importlib.util import find_spec

    needs = {"use_vllm": "vllm", "deepspeed": "deepspeed", "use_liger_kernel": "liger_kernel"}
    for field, package in needs.items():
        if config.trainer.get(field) and find_spec(package) is None:
            raise RollwiseError(f"trainer.{field}: {package} is not installed; install it, or leave the field out")


def about_adapter(error: Exception) -> bool:
    """Whether an error is peft's, or about it."""
    if "PEFT" in str(error):
        return True
    frame = error.__traceback__
    while frame is not None:
        if "peft" in Path(frame.tb_frame.f_code.co_filename).parts:
            return True
        frame = frame.tb_next
    return False
