"""`rollwise train`: check everything, make the run folder, train each arm in a process of its own, report.

Arms start from the same model, seed and budget. On CPUs they run side by side, one thread each (a second thread gains
little on small models, and spinning threads on a busy machine cost tenfold); with a GPU one after the other.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollwise.cli.adapter import make_adapter
from rollwise.cli.config import ArmSpec, RunConfig, read_config
from rollwise.cli.metrics_file import read_metrics
from rollwise.cli.preflight import Inputs, check_inputs, load_inputs
from rollwise.cli.progress import TrainingProgress
from rollwise.cli.rehearsal import rehearse_arm
from rollwise.cli.result import fold, mean_shares, scores
from rollwise.cli.run_folder import RunFolder, free_path, installed_versions, try_folder
from rollwise.cli.trainer_settings import check_words, is_adaptive, read_trainer_fields
from rollwise.types import RollwiseError

SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "MKL_NUM_THREADS": "1"}


class ArmFailure(Exception):
    """An arm ended by something that is not the user's to mend; the message says where the log is."""


def plan(config: RunConfig) -> list[str]:
    """Check the whole configuration, writing nothing; returns the lines of the start-up summary.

    Raises:
        RollwiseError: naming the first setting that does not fit.
    """
    read_trainer_fields(config.trainer)
    check_words(config)
    make_adapter(config.lora)
    try_folder(free_path(config.output, config.name))
    inputs = load_inputs(config)
    check_inputs(config, inputs)
    notes = dict.fromkeys(note for arm in config.planned_arms() for note in rehearse_arm(config, arm, inputs))
    return [*summary(config, inputs), *(f"note         {note}" for note in notes)]


def summary(config: RunConfig, inputs: Inputs) -> list[str]:
    """What is about to run, one line each."""
    versions = installed_versions()
    arms = config.planned_arms()
    trained = "all weights" if config.lora is None else f"an adapter (LoRA, r {config.lora.get('r', 8)})"
    held_out = "none" if inputs.eval_rows is None else f"{len(inputs.eval_rows)} prompts"
    lines = [
        f"trainer      TRL {versions.get('trl', '?')}, transformers {versions.get('transformers', '?')}, "
        f"torch {versions.get('torch', '?')}",
        f"model        {config.model}, training {trained}",
        f"data         {len(inputs.rows)} prompts; evaluation: {held_out}",
        f"step         B = {config.prompts_per_step} prompts x G = {config.rollouts_per_prompt} rollouts "
        f"= N = {config.budget} rollouts",
        f"budget       {budget_words(config)}",
    ]
    if "save_steps" in config.trainer:
        alone = config.trainer.get("save_only_model")
        use = ", of the model alone: --resume starts arms anew" if alone else "; --resume goes on from the last"
        lines.append(f"checkpoints  every {config.trainer['save_steps']} steps{use}")
    for arm in arms:
        levers = lever_words(arm)
        if not is_adaptive(arm):
            lines.append(f"arm          {arm.name}: {arm.allocator}{levers}, weighting {arm.weighting}")
            continue
        decisions = "sequential" if arm.sequential else f"{arm.waves} waves"
        chosen = (arm.allocator_settings or {}).get("utility", arm.utility)
        utility = f" ({chosen})" if arm.allocator == "adaroll" else ""
        labels = f", labels majority ({arm.answers})" if arm.labels == "majority" else ""
        lines.append(
            f"arm          {arm.name}: {arm.allocator}{utility}, {decisions}, n_min {arm.n_min}, "
            f"prior {arm.prior}, objective {arm.objective}, weighting {arm.weighting}{labels}{levers}"
        )
    return [piece for line in lines for piece in fold(line, indent=13)]


def lever_words(arm: ArmSpec) -> str:
    """The selector, curators and estimator that an arm sets, after its allocator."""
    curators = " then ".join(arm.curators or ())
    named = {"selector": arm.selector, "curators": curators, "advantage": arm.advantage}
    return "".join(f", {lever} {name}" for lever, name in named.items() if name)


def open_ended(config: RunConfig) -> list[str]:
    """Arms of which an update may cost several steps' rollouts: dynamic sampling waits for a batch of live groups."""
    found = []
    for arm in config.planned_arms():
        settings = (arm.curator_settings or {}).get("dynamic", {})
        if "dynamic" in (arm.curators or ()) and settings.get("rounds") != 1:
            found.append(arm.name)
    return found


def budget_words(config: RunConfig) -> str:
    """Steps and rollouts of an arm; at least so many where an arm samples until a batch is live."""
    waits, arms = open_ended(config), config.planned_arms()
    spent = f"{config.budget * config.steps:,} rollouts an arm"
    if not waits:
        return f"{config.steps} steps, {spent}"
    unequal = "; the arms spend differently" if len(waits) < len(arms) else ""
    verb = "samples" if len(waits) == 1 else "sample"
    return f"{config.steps} steps, at least {spent}: {' and '.join(waits)} {verb} until a batch is live{unequal}"


def resume(run: Path) -> dict[str, Any]:
    """Go on with a run that ended before its time, each arm from its last checkpoint; returns what `train` does.

    Raises:
        RollwiseError: for a folder that holds no such run.
        ArmFailure: if an arm fails.
    """
    with RunFolder.reopen(run) as folder:
        config = read_config(run / "config.yaml", {})
        for name in folder.record["arms"]:
            read_metrics(run / name / "metrics.jsonl")
        folder.resume()
        return finish(folder, config, [f"resumed      {run}", *folder.notes])


def train(config: RunConfig) -> dict[str, Any]:
    """Run the arms; returns the run folder, rollouts spent per arm and the evaluations.

    Raises:
        RollwiseError: for anything the user can mend; nothing has been written if it comes before the first step.
        ArmFailure: if an arm fails otherwise.
    """
    lines = plan(config)
    with RunFolder.create(config.output, config.name, config.model_dump(mode="json")) as folder:
        return finish(folder, config, [*lines, f"folder       {folder.path}"])


def finish(folder: RunFolder, config: RunConfig, lines: Sequence[str]) -> dict[str, Any]:
    """Run the arms that are not done, keep the folder's status true, and report."""
    arms = [arm.name for arm in config.planned_arms()]
    try:
        with TrainingProgress(arms, config.steps, config.budget, open_ended(config)) as progress:
            for line in lines:
                progress.say(line)
            run_arms(folder, [name for name in arms if name not in folder.record["arms"]], progress)
        folder.mark("complete")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            folder.mark("interrupted")
        elif folder.record["status"] == "running":  # a terminal that is gone makes the bars fail after an interrupt
            folder.mark("failed", str(error))
        raise
    finally:
        report = write_report(folder.path)
    results = folder.record["arms"]
    return {
        "run": str(folder.path),
        "report": report,
        "rollouts_spent": {name: results[name]["rollouts_spent"] for name in arms},
        "rollouts_lost": {name: results[name].get("rollouts_lost", 0) for name in arms},
        "seconds": {name: results[name]["seconds"] for name in arms},
        "before": results[arms[0]].get("before"),
        "evaluation": {name: results[name].get("after") for name in arms},
        "shares": {name: mean_shares(folder.path / name / "metrics.jsonl") for name in arms},
    }


def run_arms(folder: RunFolder, arms: Sequence[str], progress: TrainingProgress) -> None:
    """Start the arms, as many at a time as the machine allows, and follow their events to the end."""
    waiting = list(arms)
    running: dict[str, subprocess.Popen[str]] = {}
    events: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
    try:
        while waiting or running:
            while waiting and len(running) < side_by_side():
                name = waiting.pop(0)
                folder.arm(name)
                running[name] = start_arm(folder.path, name, events)
            name, event = events.get()
            kind = event.pop("event")
            if kind == "note":
                progress.say(f"{name}: {event['text']}")
            elif kind == "start":
                place = f" after step {event['step']}" if event["step"] else ""
                progress.say(f"{name}: started{place}, {event['parameters']:,} parameters")
            elif kind == "step":
                progress.step(name, event)
            elif kind == "evaluation":
                progress.say(f"{name}: {event.pop('when')} training, {scores(event)}")
            elif kind == "done":
                folder.finish_arm(name, event)
            elif kind == "error":
                fail(folder, name, event)
            elif kind == "exit":
                status = running.pop(name).wait()
                if name not in folder.record["arms"]:
                    fail(folder, name, {"kind": "unexpected", "message": f"the process ended with status {status}"})
    except KeyboardInterrupt:
        folder.mark("interrupted")  # before anything that takes long: whoever ended the run may not wait
        raise
    finally:
        stop(list(running.values()))


def fail(folder: RunFolder, name: str, event: Mapping[str, Any]) -> None:
    """Raise what an arm's error event says."""
    if event["kind"] == "user":
        raise RollwiseError(event["message"])
    raise ArmFailure(f"arm {name} failed: {event['message']} (log: {folder.path / name / 'log.txt'})")


def start_arm(run: Path, name: str, events: queue.Queue[tuple[str, dict[str, Any]]]) -> subprocess.Popen[str]:
    """Start one arm; a thread puts its events on the queue, `exit` last."""
    environment = {**os.environ, "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
    if not on_gpu():
        environment |= SINGLE_THREAD
    with (run / name / "log.txt").open("a") as log:  # what goes wrong before the arm has its own output in hand
        process = subprocess.Popen(
            [sys.executable, "-m", "rollwise.cli.arm", str(run), name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def follow() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            events.put((name, json.loads(line)))
        events.put((name, {"event": "exit"}))

    threading.Thread(target=follow, daemon=True).start()
    return process


def stop(processes: Sequence[subprocess.Popen[str]]) -> None:
    """End arms and what they started; kills what does not end in ten seconds, or at once on a second Ctrl-C."""
    signal_groups(processes, signal.SIGTERM)
    deadline = time.monotonic() + 10
    try:
        for process in processes:
            process.wait(timeout=max(0.1, deadline - time.monotonic()))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        signal_groups(processes, signal.SIGKILL)
        for process in processes:
            process.wait()


def signal_groups(processes: Sequence[subprocess.Popen[str]], number: signal.Signals) -> None:
    """Send a signal to each process and to what it started."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def side_by_side() -> int:
    """How many arms run at a time: one on a GPU, else one per core."""
    return 1 if on_gpu() else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_gpu() -> bool:
    """Whether torch sees a GPU."""
    import torch

    return bool(torch.cuda.is_available())


def write_report(run: Path) -> str | None:
    """Write `report.html`; None where nothing was trained, or where plotting is not installed (said in one line)."""
    try:
        from rollwise.report import write

        return str(write(run))
    except ImportError as error:
        print(f"rollwise: no report: {error.name} is not installed; pip install 'rollwise[report]'", file=sys.stderr)
    except RollwiseError:
        pass
    return None
