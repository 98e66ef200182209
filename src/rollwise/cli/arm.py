"""One arm of a run, in a process of its own: `python -m rollwise.cli.arm RUN_FOLDER ARM`.

Events go to standard output, one JSON object a line (`note`, `start`, `step`, `evaluation`, `done`, `error`); whatever the
trainer and its libraries print goes to `<arm>/log.txt`, so that neither gets into the other.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, TextIO

from rollwise.cli.config import ArmSpec, RunConfig, read_config
from rollwise.cli.metrics_file import forget_after
from rollwise.types import RollwiseError


def main(run: Path, name: str) -> int:
    """Train one arm of the run in `run`; returns the exit status (0, 1 unexpected, 2 user error)."""
    events = Events(divert_output(run / name / "log.txt"))
    try:
        config = read_config(run / "config.yaml", {})
        arm = next(arm for arm in config.planned_arms() if arm.name == name)
        events.send("done", **train_arm(config, arm, run, events))
        return 0
    except RollwiseError as error:
        events.send("error", kind="user", message=str(error))
        return 2
    except SystemExit as error:
        reason = f"a reward function or the model's code ended the program (sys.exit({error.code!r}))"
        events.send("error", kind="user", message=f"arm {name}: {reason}; let it raise or return None instead")
        return 2
    except Exception as error:
        traceback.print_exc()
        first = str(error).strip().splitlines()[:1]
        events.send("error", kind="unexpected", message=f"{type(error).__name__}: {first[0] if first else ''}")
        return 1


class Events:
    """The stream of events a parent process reads."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def send(self, event: str, **fields: Any) -> None:
        """Write one event and flush it."""
        print(json.dumps({"event": event, **fields}), file=self._stream, flush=True)


def divert_output(log: Path) -> TextIO:
    """Point standard output and error, also those of C code, at `log`; returns the former standard output."""
    kept = os.fdopen(os.dup(1), "w", encoding="utf-8")
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(target, 1)
    os.dup2(target, 2)
    return kept


def train_arm(config: RunConfig, arm: ArmSpec, run: Path, events: Events) -> dict[str, Any]:
    """Evaluate, train, evaluate and save one arm; returns its result."""
    import torch

    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    from rollwise.cli.adapter import save_trained
    from rollwise.cli.evaluation import evaluate
    from rollwise.cli.preflight import load_inputs
    from rollwise.cli.trainer import make_trainer

    inputs = load_inputs(config)
    folder = run / arm.name
    checkpoint, done, notes = find_checkpoint(config, folder)
    for note in notes:
        events.send("note", text=note)
    taken = forget_after(folder / "metrics.jsonl", done)
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as metrics:
        trainer = make_trainer(config, arm, inputs, run)
        trainer.add_callback(step_reporter(config, metrics, events, taken))
        events.send("start", step=done, parameters=sum(weight.numel() for weight in trainer.model.parameters()))
        result: dict[str, Any] = {}
        first = config.planned_arms()[0].name == arm.name
        if inputs.eval_rows is not None and first:  # every arm starts from the same model: one measures it
            result["before"] = evaluate(trainer, inputs, config)
            events.send("evaluation", when="before", **result["before"])
        began = time.monotonic()
        trainer.train(resume_from_checkpoint=checkpoint)
        result["seconds"] = round(taken + time.monotonic() - began, 1)
    result |= {"rollouts_spent": trainer.rollouts_spent, "rollouts_lost": trainer.rollouts_lost}
    if inputs.eval_rows is not None:
        result["after"] = evaluate(trainer, inputs, config)
        events.send("evaluation", when="after", **result["after"])
    save_trained(trainer, folder)
    return result


def find_checkpoint(config: RunConfig, folder: Path) -> tuple[str | None, int, list[str]]:
    """The checkpoint that an arm goes on from and its step, none and 0 where it starts anew; and what to say of that."""
    from rollwise.integrations.trl.manifest import checkpoints, last_whole, step_of

    saved = checkpoints(folder)
    if saved and config.trainer.get("save_only_model"):
        return None, 0, ["starts anew: its checkpoints hold the model alone, as trainer.save_only_model asks"]
    found, notes = last_whole(folder)
    if found is None:
        return None, 0, [*notes, *(["starts anew: none of its checkpoints is whole"] if saved else [])]
    step = step_of(found)
    if step > config.steps:
        notes.append(f"{step} steps are trained already, more than steps: {config.steps}; nothing is left to train")
    return str(found), step, notes


def step_reporter(config: RunConfig, metrics: TextIO, events: Events, taken: float) -> Any:
    """A trainer callback that appends each step's metrics to the file and sends them as an event.

    `taken` is the seconds of training before this process.
    """
    from transformers import TrainerCallback

    began = time.monotonic() - taken

    class StepReporter(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if not logs or "reward" not in logs:
                return
            line = {"step": state.global_step, "seconds": round(time.monotonic() - began, 2), **logs}
            line.setdefault("rollwise/rollouts_spent", config.budget * state.global_step)
            print(json.dumps(line, default=float), file=metrics, flush=True)
            events.send("step", **{key: line[key] for key in line if key.startswith("rollwise/") or key in SHOWN})

    return StepReporter()


SHOWN = ("step", "seconds", "reward", "frac_reward_zero_std", "loss")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
