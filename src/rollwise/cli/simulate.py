"""`rollwise simulate`: methods on prompts as coins at equal rollouts; printing is here, flags are the app's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from rollwise.cli.picture import check_picture
from rollwise.simulate.imperfections import Imperfections
from rollwise.simulate.leaderboard import Difference, by_setting, difference, estimate, utilities_table, write_parquet
from rollwise.simulate.methods import parse_methods
from rollwise.simulate.runner import Setting
from rollwise.simulate.runner import run as run_arms
from rollwise.types import RollwiseError

METHODS = "uniform,min_variance,sum_variance"
SHOWN = (
    "dead_prompt_share",
    "informative_rollout_share",
    "unsolved_share",
    "effective_rollout_share",
    "ideal_informative",
    "rollouts_trained_on",
    "max_n",
    "n0_share",
    "n1_share",
    "alloc_entropy",
    "unknown_share",
    "lost",
    "wrong_verdict_share",
    "clock",
)
LEARNING = ("final_rate", "curve_rate")
COLUMNS = {
    "dead_prompt_share": "dead prompts",
    "informative_rollout_share": "informative",
    "unsolved_share": "unsolved",
    "max_n": "largest n",
    "clock": "time",
    "final_rate": "final rate",
    "curve_rate": "mean rate",
}


def run(
    *,
    methods: str | Sequence[str] = METHODS,
    seeds: int | str = 2,
    baseline: str | None = None,
    output: str | Path | None = None,
    workers: int | None = None,
    ledgers: bool = True,
    picture: str | Path | None = None,
    progress: bool = False,
    imperfections: dict[str, Any] | None = None,
    **setting: Any,
) -> dict[str, Any]:
    """Run a comparison and sum it up, JSON-able.

    Args:
        methods: see `rollwise.simulate.methods`.
        seeds: how many, from 0, or a range "10-19".
        baseline: the label the others are compared to; by default `uniform`, else the first method.
        output: folder for results.jsonl (resumed from) and results.parquet.
        picture: file to write, of the kind it ends in.
        setting: fields of `rollwise.simulate.runner.Setting`.

    Raises:
        RollwiseError: naming the setting that cannot be met.
    """
    chosen, common = parse_methods(methods), Setting(**setting, imperfections=Imperfections(**(imperfections or {})))
    labels = [method.label for method in chosen]
    base = baseline or ("uniform" if "uniform" in labels else labels[0])
    if base not in labels:
        raise RollwiseError(f"baseline: {base!r} is none of the methods; give one of {', '.join(labels)}")
    if workers is not None and workers < 1:
        raise RollwiseError(f"workers: {workers} processes; give 1 or more")
    most = common.budget // common.prompts
    if common.n_min > max(2, most):
        raise RollwiseError(
            f"n_min: {common.n_min} for {common.prompts} prompts and {common.budget} rollouts; at most {most}"
        )
    if picture is not None:
        check_picture(picture)
    with Bars(progress) as bars:
        rows = run_arms(
            common, chosen, read_seeds(seeds), output=output, workers=workers, ledgers=ledgers, progress=bars.show
        )
    result = sum_up(rows, base)
    if output is not None:
        result["results"] = str(Path(output) / "results.jsonl")
        result["parquet"] = str(write_parquet(rows, Path(output) / "results.parquet"))
    if picture is not None:
        from rollwise.cli.simulate_picture import draw

        result["picture"] = str(draw(result, rows, picture))
    return result


def read_seeds(seeds: int | str) -> range:
    """5 or "5" is 0 to 4, "10-19" those.

    Raises:
        RollwiseError: anything else.
    """
    text = str(seeds)
    low, dash, high = text.partition("-")
    try:
        found = range(int(low), int(high) + 1) if dash and low else range(int(text))
    except ValueError:
        found = range(0)
    if not len(found):
        raise RollwiseError(f"seeds: {text}; give their number, such as 5, or a range, such as 10-19")
    return found


def sum_up(rows: Sequence[dict[str, Any]], baseline: str) -> dict[str, Any]:
    """One setting's rows: metrics, differences to the baseline, utilities beside their bounds, and the account."""
    (key, methods), *_ = by_setting(rows).items()
    names = (*SHOWN, *(name for name in LEARNING if name in rows[0]["means"]))
    found: dict[str, Any] = {
        "setting": json.loads(key),
        "seeds": sorted({row["seed"] for row in rows}),
        "baseline": baseline,
        "methods": {},
        "utilities": utilities_table(methods),
    }
    for label, own in methods.items():
        found["methods"][label] = {
            "rollouts_paid": [row["paid"] for row in own],
            "ledger_paid": [row["ledger_paid"] for row in own],
            "seconds": round(sum(row["seconds"] for row in own), 2),
            "metrics": {name: asdict(estimate(own, name)) for name in names},
            "differences": {}
            if label == baseline
            else {name: asdict(difference(own, methods[baseline], name)) for name in names},
        }
    return found


def tables(result: dict[str, Any]) -> Group:
    """The result for a terminal."""
    setting, methods = result["setting"], result["methods"]
    flawed = any(map(bool, setting["imperfections"].values()))
    names = [
        name
        for name in COLUMNS
        if all(name in found["metrics"] for found in methods.values()) and (name != "clock" or flawed)
    ]
    shape = Table(Column("method", no_wrap=True), *(COLUMNS[name] for name in names), "rollouts")
    for label, found in methods.items():
        cells = [cell(name, found["metrics"][name]) for name in names]
        shape.add_row(label, *cells, str(sum(found["rollouts_paid"])))
    parts: list[Any] = [
        f"{setting['pool']}: {setting['prompts']} prompts, {setting['budget']} rollouts a step, "
        f"{setting['steps']} steps, {len(result['seeds'])} seeds",
        shape,
    ]
    others = {label: found for label, found in methods.items() if found["differences"]}
    if others and len(result["seeds"]) > 1:
        first = Column(f"minus {result['baseline']}", no_wrap=True)
        gaps = Table(first, *(COLUMNS[name] for name in names), title="95 % intervals over seeds")
        for label, found in others.items():
            gaps.add_row(label, *(gap(name, Difference(**found["differences"][name])) for name in names))
        parts.append(gaps)
    reached = Table(Column("utility reached", no_wrap=True), *methods, "optimum", "bound")
    for name, entry in result["utilities"].items():
        cells = [
            f"{own['mean']:.3f}" + (f" ({own['share']:.0%})" if own["share"] is not None else "")
            for own in entry["methods"].values()
        ]
        ends = [f"{entry[key]:.3f}" if entry[key] is not None else "" for key in ("optimum", "bound")]
        reached.add_row(name, *cells, *ends)
    return Group(*parts, reached)


def cell(name: str, found: dict[str, float]) -> str:
    """Mean and 95 % half-width, shares in per cent."""
    mean, half = found["mean"], 1.96 * found["error"]
    if name.endswith(("share", "rate", "prompts")):
        return f"{mean:.1%}" + (f" ±{half:.1%}" if half == half else "")
    return f"{mean:.1f}"


def gap(name: str, found: Difference) -> str:
    """Difference with its interval."""
    form = ".1%" if name.endswith(("share", "rate")) else ".1f"
    return f"{found.mean:+{form}} [{found.low:+{form}}, {found.high:+{form}}]"


class Bars:
    """Arms done: a bar on a terminal, else a line for every tenth of them, on standard error."""

    def __init__(self, wanted: bool) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._wanted = wanted
        self._bar: Progress | None = None
        if wanted and self._console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=self._console)
            self._task = self._bar.add_task("arms", total=None)

    def __enter__(self) -> Bars:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def show(self, done: int, total: int, row: dict[str, Any]) -> None:
        """Called after every arm."""
        if self._bar:
            self._bar.update(
                self._task, completed=done, total=total, description=f"{row['method']} seed {row['seed']}"
            )
        elif self._wanted and done * 10 // total > (done - 1) * 10 // total:
            self._console.print(f"{done}/{total} arms: {row['method']} seed {row['seed']}, {row['seconds']:.1f} s")
