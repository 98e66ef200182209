"""`rollwise lab`: methods side by side on a tiny language model, seed by seed; printing is the app's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rollwise.types import RollwiseError

LAST_SEED = 9_999_999
METHODS = "uniform,adaroll:min_variance"
NOTE = (
    "Accuracy: held-out problems at temperature 1, after equal rollouts (or tokens, or steps). Differences are paired by "
    "seed, intervals bootstrapped; one that holds 0 shows no difference. reached: seeds that came to the baseline's "
    "final accuracy. needs: seeds that a test of the difference seen would need. dead: prompts without a live group."
)


def run(
    *,
    tasks: Sequence[str] = ("chains",),
    methods: str = METHODS,
    every: Sequence[str] = (),
    seeds: str = "5",
    steps: int = 300,
    prompts: int = 32,
    rollouts: int = 8,
    until: str = "rollouts",
    tokens: int | None = None,
    pool: str = "even",
    pool_size: int = 1024,
    size: str = "tiny",
    target: float = 0.4,
    evaluate_every: int = 25,
    baseline: str | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """Run what is missing in the folder `out` and summarise it, JSON-able.

    Args:
        tasks: names, or several joined by commas.
        methods: arms (`rollwise.lab.arms`), joined by commas.
        out: folder of the results; by default one below runs/lab for each set of shared settings.
        every: settings of all arms that do not set them, such as "loss=dapo".
        seeds: how many, or a range such as "10-19".
        others: as in `rollwise.lab.training.Training` and `rollwise.lab.warmup.Warmup`.

    Raises:
        RollwiseError: naming the setting that is not valid.
    """
    try:
        from rollwise.lab.arms import parse_arm, parse_arms
        from rollwise.lab.runs import Experiment, default_folder, run_experiment
        from rollwise.lab.summary import summarise
        from rollwise.lab.training import Training
        from rollwise.lab.warmup import Warmup
    except ImportError as error:
        raise RollwiseError(f"lab: {error.name} is not installed; pip install 'rollwise[train]'") from None
    numbers = read_seeds(seeds)
    arms = parse_arms(methods)
    if unset := next((extra for extra in every if not extra.partition("=")[0].strip() or "=" not in extra), None):
        raise RollwiseError(f"set: {unset!r} is no setting; give key=value, such as waves=8")
    if every:
        # read as text again, so that a setting means the same in both places
        told = [{part.partition("=")[0] for part in arm.name.split("@")[1:]} for arm in arms]
        whole = [
            "@".join([arm.name, *(extra for extra in every if extra.partition("=")[0] not in mine)])
            for arm, mine in zip(arms, told, strict=True)
        ]
        arms = tuple(replace(parse_arm(text), name=arm.name) for text, arm in zip(whole, arms, strict=True))
    if baseline is not None and baseline not in {arm.name for arm in arms}:
        raise RollwiseError(f"baseline: {baseline!r} is not among the methods; give {arms[0].name}")
    warmup = Warmup(size=size, target=target, pool=pool, pool_size=pool_size)
    experiment = Experiment(
        arms,
        tuple(name.strip() for text in tasks for name in text.split(",") if name.strip()),
        numbers,
        Training(warmup, steps, prompts, rollouts, until, evaluate_every, tokens=tokens),
    )
    folder = Path(out) if out is not None else default_folder(experiment.training)
    with LabProgress(len(arms) * len(experiment.tasks) * len(numbers), show=progress) as shown:
        results = run_experiment(experiment, folder, jobs=jobs, report=shown.result, say=shown.say)
    return {
        "out": str(folder),
        "tasks": list(experiment.tasks),
        "seeds": list(experiment.seeds),
        "budget": prompts * rollouts,
        "steps": steps,
        "summary": summarise(results, baseline),
        "note": NOTE,
    }


def read_seeds(text: str) -> tuple[int, ...]:
    """Seeds 0 to K-1 for a number K, or all of a range such as "10-19".

    Raises:
        RollwiseError: anything else, or none.
    """
    first, dash, last = str(text).partition("-")
    try:
        seeds = tuple(range(int(first), int(last) + 1)) if dash else tuple(range(int(first)))
    except (ValueError, OverflowError):
        seeds = ()
    if not seeds or seeds[-1] > LAST_SEED:
        raise RollwiseError(f"seeds: {text!r}; give how many, such as 5, or a range such as 10-19, up to {LAST_SEED}")
    return seeds


class LabProgress:
    """A bar over runs and a line for each, on standard error."""

    def __init__(self, runs: int, console: Console | None = None, show: bool = True) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._show = show
        self._bar: Progress | None = None
        if show and self.console.is_terminal:
            columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=self.console)
            self._task = self._bar.add_task("runs", total=runs)

    def __enter__(self) -> LabProgress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def say(self, line: str) -> None:
        """One line of text."""
        if self._show:
            self.console.print(line, markup=False, soft_wrap=True)

    def result(self, result: dict[str, Any], done: int, runs: int) -> None:
        """One finished run."""
        first, last = result["curve"][0], result["curve"][-1]
        if self._bar:
            self._bar.update(self._task, completed=done)
        self.say(
            f"run {done}/{runs}: {result['task']} seed {result['seed']} {result['arm']}  accuracy "
            f"{first['sampled']:.3f} -> {last['sampled']:.3f} after {result['rollouts']} rollouts, "
            f"{result['wall_seconds']:.0f} s"
        )


def table(result: dict[str, Any]) -> Table:
    """The summary as a table: a block of rows per task."""
    title = f"{result['steps']} steps of {result['budget']} rollouts"
    shown = Table(title=title, caption=NOTE, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("method", overflow="fold", min_width=22)
    for name in ("accuracy", "differs", "95 % interval", "reached", "needs", "dead"):
        shown.add_column(name, justify="right", no_wrap=True)
    for task in dict.fromkeys(row["task"] for row in result["summary"]):
        shown.add_section()
        rows = [row for row in result["summary"] if row["task"] == task]
        shown.add_row(f"[bold]{task}, {rows[0]['seeds']} seeds")
        for row in rows:
            shown.add_row(*cells(row))
    return shown


def cells(row: dict[str, Any]) -> list[str]:
    """One row: `reached` counts seeds that came to the baseline's final accuracy, `needs` is seeds a test would need."""
    gap, reach = row.get("final_difference", {}), row.get("to_baseline", {})
    interval = gap.get("interval")
    return [
        row["arm"],
        f"{row['final']['mean']:.3f}" if "final" in row else "",
        f"{gap['mean']:+.3f}" if gap else "",
        f"[{interval[0]:+.3f}, {interval[1]:+.3f}]".replace("[", "\\[") if interval else "",
        f"{reach['reached']}/{reach['of']}" if reach else "",
        str(gap.get("seeds_needed") or ""),
        f"{row['dead_prompt_share']:.0%}" if "dead_prompt_share" in row else "",
    ]
