"""Paired experiments: arms x tasks x seeds over processes of one thread each, one file a run, resumable.

Arms of a seed share warm checkpoint, pool, order of prompts and evaluation set, so they are compared seed by seed:
seeds differ far more than arms do.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rollwise.lab.arms import Arm
from rollwise.lab.loop import Run
from rollwise.lab.results import SHARED, read_result, read_shared
from rollwise.lab.state import take_up, write_text
from rollwise.lab.tasks import get_task
from rollwise.lab.training import Training
from rollwise.lab.warmup import cache_folder, prepare_start
from rollwise.step import check_step
from rollwise.types import UNLIMITED, RollwiseError
from rollwise.workers import end_with_parent


@dataclass(frozen=True)
class Experiment:
    """Every arm on every task with every seed; `training` says the rest (its own task and seed are replaced)."""

    arms: tuple[Arm, ...]
    tasks: tuple[str, ...] = ("chains",)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        for task in self.tasks:
            get_task(task)
        if not (self.arms and self.tasks and self.seeds):
            raise RollwiseError("arms, tasks, seeds: give at least one of each")
        chosen = {"task": self.tasks, "seeds": self.seeds, "methods": tuple(arm.name for arm in self.arms)}
        for setting, values in chosen.items():
            if twice := [value for value in values if values.count(value) > 1]:
                raise RollwiseError(f"{setting}: {twice[0]} is given twice; give each once")
        shared = self.training
        for arm in self.arms:
            cap = UNLIMITED if arm.n_max is None else arm.n_max
            arm.token_costs(shared)
            check_step(shared.prompts, shared.budget, arm.waves, 1, arm.n_min, cap)

    def training_of(self, task: str, seed: int) -> Training:
        """The shared settings for that task and seed."""
        return replace(self.training, warmup=replace(self.training.warmup, task=task, seed=seed))


@dataclass(frozen=True)
class Job:
    """One run, and the file its result goes to."""

    arm: Arm
    training: Training
    path: Path
    cache: Path


def run_experiment(
    experiment: Experiment,
    out: str | Path,
    *,
    jobs: int | None = None,
    cache: str | Path | None = None,
    report: Callable[[dict[str, Any], int, int], None] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Make every run that `out` does not hold yet; all results, in order of task, arm and seed.

    Files: `experiment.json` (shared settings, machine), `<task>/<arm>/seed-<k>.json`, `results.jsonl` (one line a run).
    A run that was cut short goes on from its last saved state, to the same result.

    Args:
        jobs: processes, by default one a core; 1 runs in this process.
        cache: folder of warm checkpoints (`rollwise.lab.warmup.cache_folder`).
        report: called with each new result, how many are done and how many there are.
        say: called with lines about the warm-ups.

    Raises:
        RollwiseError: if `out` holds an experiment with other shared settings or a damaged result, or a warm-up fails.
    """
    if jobs is not None and jobs < 1:
        raise RollwiseError(f"jobs: {jobs} processes; give 1 or more")
    folder, checkpoints = Path(out), Path(cache or cache_folder())
    check_folder(experiment, folder)
    whole = [
        Job(arm, experiment.training_of(task, seed), result_path(folder, task, arm, seed), checkpoints)
        for seed in experiment.seeds
        for task in experiment.tasks
        for arm in experiment.arms
    ]
    found = {job.path: read_result(job.path, job.arm.name) for job in whole if job.path.exists()}
    missing = [job for job in whole if job.path not in found]
    done = len(found)
    workers = min(jobs or os.cpu_count() or 1, max(1, len(missing)))
    with open_pool(workers) as pool:
        starts = {job.training.warmup: job for job in missing}
        for index, line in enumerate(_as_done(pool, warm, list(starts.values())), start=1):
            say(f"warm-up {index}/{len(starts)}: {line}")
        for result in _as_done(pool, run_job, missing):
            done += 1
            if report is not None:
                report(result, done, len(whole))
    order = {name: place for place, name in enumerate(experiment.tasks)}
    results = [found.get(job.path) or read_result(job.path, job.arm.name) for job in whole]
    names = {arm.name: place for place, arm in enumerate(experiment.arms)}
    results.sort(key=lambda row: (order[row["task"]], names[row["arm"]], row["seed"]))
    write_text(folder / "results.jsonl", "".join(json.dumps(brief(row)) + "\n" for row in results))
    return results


def warm(job: Job) -> str:
    """Make sure the job's warm checkpoint is there; a line about it."""
    start = prepare_start(job.training.warmup, job.cache, report=lambda line: None)
    warmup = job.training.warmup
    return f"{warmup.task} seed {warmup.seed}, {start.steps} steps, accuracy {start.accuracy:.3f}"


def run_job(job: Job) -> dict[str, Any]:
    """Finish one run and write its result."""
    start = prepare_start(job.training.warmup, job.cache, report=lambda line: None)
    state = job.path.with_suffix(".pt")
    began = time.perf_counter()

    def open_run(path: Path) -> Run:
        return Run(job.arm, job.training, start, state=path)

    result = (take_up(state, open_run) or open_run(state)).finish()
    result["wall_seconds"] = round(time.perf_counter() - began, 3)
    write_text(job.path, json.dumps(result) + "\n")
    state.unlink(missing_ok=True)
    return result


def brief(result: dict[str, Any]) -> dict[str, Any]:
    """The result without its per-step columns: their means instead, and the curve without classes."""
    points = [{key: value for key, value in point.items() if key != "by_class"} for point in result["curve"]]
    means = {key: float(f"{np.mean(values):.5g}") for key, values in result["metrics"].items()}
    return result | {"curve": points, "metrics": means}


def result_path(folder: Path, task: str, arm: Arm, seed: int) -> Path:
    """Where a run's result is: readable, and different for arms whose settings differ."""
    slug = re.sub(r"[^A-Za-z0-9.=_]+", "-", arm.name).strip("-")[:60]
    return folder / task / f"{slug}-{arm.key}" / f"seed-{seed}.json"


def check_folder(experiment: Experiment, folder: Path) -> None:
    """Write what the experiment's runs share into the folder, or compare with what is there.

    Raises:
        RollwiseError: if the folder holds runs with other shared settings, or cannot be written.
    """
    shared = shared_settings(experiment.training)
    path = folder / SHARED
    if path.exists():
        there = read_shared(folder)
        changed = [key for key in shared if key != "save_every" and there.get(key) != shared[key]]
        if changed:
            raise RollwiseError(
                f"out: {folder} holds runs with {changed[0]} {there.get(changed[0])}, not {shared[changed[0]]}; "
                "give another folder"
            )
        return
    write_text(path, json.dumps({"training": shared, "machine": describe_machine()}, indent=2) + "\n")


def shared_settings(training: Training) -> dict[str, Any]:
    """What all runs of a folder have in common."""
    shared = asdict(training)
    for own in ("task", "seed"):
        del shared["warmup"][own]
    if shared["tokens"] is None:
        del shared["tokens"]  # so that folders of earlier versions keep their names
    return shared


def default_folder(training: Training) -> Path:
    """A folder of its own for each set of shared settings, so that the same command goes on where it stopped."""
    text = json.dumps(shared_settings(training), sort_keys=True)
    return Path("runs/lab") / hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def describe_machine() -> dict[str, Any]:
    """Processor, cores and versions, for results that are kept."""
    from importlib import metadata

    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return {
        "processor": named[1].strip() if named else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("rollwise", "torch", "numpy")},
    }


@contextmanager
def open_pool(workers: int) -> Iterator[Executor | None]:
    """Processes of one thread each; None for one worker, which is this process."""
    threads = torch.get_num_threads()
    if workers == 1:
        # one thread gives the same results whichever way the experiment is run
        torch.set_num_threads(1)
        try:
            yield None
        finally:
            torch.set_num_threads(threads)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=start_worker) as pool:
        try:
            yield pool
        except BaseException:
            # what runs saves itself and is taken up again; what waits need not start
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def start_worker() -> None:
    """One thread, and an end with the experiment."""
    torch.set_num_threads(1)
    end_with_parent()


def _as_done(pool: Executor | None, work: Callable[[Job], Any], jobs: list[Job]) -> Iterator[Any]:
    if pool is None:
        yield from map(work, jobs)
        return
    running: set[Future[Any]] = {pool.submit(work, job) for job in jobs}
    while running:
        ended, running = wait(running, return_when=FIRST_COMPLETED)
        for future in ended:
            yield future.result()
