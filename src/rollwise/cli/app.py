"""The commands and their flags, and the one place where errors become one line and an exit status.

Exit status: 0 done, 1 unexpected, 2 something the user can mend, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from rollwise.cli import train_flags
from rollwise.cli.output import AsJson, results_alone, show, show_tables
from rollwise.types import RollwiseError

app = typer.Typer(
    name="rollwise",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
USAGE_ERROR: Any = typer.BadParameter.__base__  # click's own or, in newer releases, typer's copy of it
INTERRUPTED = 130
ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask a run to end: the system's, and a terminal that is closed."""


def run(arguments: Sequence[str]) -> None:
    """Run the command line and exit; never returns, never shows a traceback unless ROLLWISE_DEBUG is set."""
    if "--json" in arguments and sys.stdout is not None:
        sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # also for programs that a user's function starts
    sys.exit(status_of(arguments))


def status_of(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit status and says on standard error, in one line, what went wrong."""
    for ending in ENDINGS:
        if signal.getsignal(ending) != signal.SIG_IGN:  # as under nohup
            signal.signal(ending, interrupt)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # deprecations inside the libraries are not the user's
    try:
        with results_alone() if "--json" in arguments else contextlib.nullcontext():
            outcome = typer.main.get_command(app).main(list(arguments), prog_name="rollwise", standalone_mode=False)
        if outcome == INTERRUPTED:  # newer releases of typer turn Ctrl-C into this
            raise KeyboardInterrupt
        return outcome if isinstance(outcome, int) else 0
    except RollwiseError as error:
        return say(str(error), 2)
    except USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a command group without a command: its help, as with --help
            print(error.format_message())
            return 0
        return say(error.format_message(), 2)
    except (KeyboardInterrupt, typer.Abort):
        return say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get("ROLLWISE_DEBUG"):
            traceback.print_exc()
        kind = "" if type(error).__name__ == "ArmFailure" else f"unexpected {type(error).__name__}: "
        return say(f"{kind}{error}", 1)


def say_version(wanted: bool) -> None:
    """Print the version and end, where it was asked for."""
    if wanted:
        print(f"rollwise {metadata.version('rollwise')}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Spend a fixed rollout budget where it teaches the model most."""


def say(message: str, status: int) -> int:
    """Print one line about an error, what cannot be printed escaped; returns the status."""
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in " ".join(message.split()))
    with contextlib.suppress(OSError):  # the terminal may be gone
        print("rollwise:", line, file=sys.stderr)
    return status


def interrupt(*signal_and_frame: object) -> None:
    """End as by Ctrl-C, so that a terminated run stops its arms and says so in its folder; once, that it may do so."""
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt


app.command("train", context_settings=train_flags.OPEN)(train_flags.train)


@app.command()
def solve(
    utility: Annotated[str, typer.Option(help="min_variance, sum_variance, ...")] = "min_variance",
    prompts: Annotated[int, typer.Option(help="B, prompts of a step.")] = 4,
    budget: Annotated[int, typer.Option(help="N, rollouts of a step.")] = 32,
    method: Annotated[str, typer.Option(help="exact, index (one at a time, any size) or waves.")] = "exact",
    waves: Annotated[int | None, typer.Option(help="R, decisions to spend the budget in (waves; default 4).")] = None,
    max_per_prompt: Annotated[
        int | None, typer.Option(help="Most rollouts of one prompt (default: exact none, else 64).")
    ] = None,
    advantage_form: Annotated[str, typer.Option(help="raw or normalised.")] = "raw",
    prior: Annotated[str, typer.Option(help="Beta prior a,b.")] = "1,1",
    save: Annotated[Path | None, typer.Option(help="Write the solved table, or the table of indices, there.")] = None,
    as_json: AsJson = False,
) -> None:
    """What a step's allocation is worth, beside uniform and a bound that no allocation beats."""
    from rollwise.beliefs import parse_prior
    from rollwise.cli import solve as command
    from rollwise.cli.solve_lines import lines

    result = command.run(
        utility=utility,
        prompts=prompts,
        budget=budget,
        method=method,
        waves=waves,
        max_per_prompt=max_per_prompt,
        advantage_form=advantage_form,
        prior=parse_prior(prior),
        save=save,
    )
    show(lines(result), result, as_json)


@app.command()
def plan(
    rates: Annotated[str | None, typer.Option(help="Pass rates: 0:0.3,0.5:0.7 (rate:share), or a JSON file.")] = None,
    counts: Annotated[Path | None, typer.Option(help="JSONL file of successes and trials, one prompt a line.")] = None,
    prior: Annotated[str | None, typer.Option(help="The population as a Beta a,b; 1,1 if nothing is given.")] = None,
    visit: Annotated[int, typer.Option(help="Which visit of a --counts file that has several; -1 the last.")] = 0,
    prompts: Annotated[int, typer.Option(help="B, prompts of a step.")] = 32,
    rollouts: Annotated[int, typer.Option(help="G, rollouts per prompt; the step spends B x G.")] = 8,
    method: Annotated[
        list[str] | None, typer.Option(help="uniform, a utility of adaroll, or an allocator; several times.")
    ] = None,
    objective: Annotated[
        str, typer.Option(help="none, mean, log, pass@k (such as pass@4) or module:function.")
    ] = "none",
    advantage: Annotated[str, typer.Option(help="Estimator that w(p) is for.")] = "dr_grpo",
    belief: Annotated[
        str, typer.Option(help="Beta the methods open with, a,b, or 'pool' for the fitted one.")
    ] = "1,1",
    waves: Annotated[int, typer.Option(help="Decisions per step.")] = 4,
    n_min: Annotated[int, typer.Option(help="Fewest rollouts per prompt.")] = 2,
    draws: Annotated[int | None, typer.Option(help="Simulated steps; default as many as make 2,000 prompts.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    picture: Annotated[Path | None, typer.Option(help="PNG file to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """Before any GPU time: dead and informative shares, allocation, weight curves and what allocation can save."""
    from rollwise.cli import plan as command
    from rollwise.cli.plan_tables import tables

    result = command.run(
        rates=rates,
        counts=counts,
        prior=prior,
        visit=visit,
        prompts=prompts,
        rollouts=rollouts,
        methods=method or command.METHODS,
        objective=objective,
        advantage=advantage,
        belief=belief,
        waves=waves,
        n_min=n_min,
        draws=draws,
        seed=seed,
        picture=picture,
    )
    if as_json:
        show([], result, True)
    else:
        show_tables(tables(result))


@app.command()
def lab(
    task: Annotated[
        list[str] | None, typer.Option(help="chains, division, sort, rewrite, brackets, ...; several times.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Comma-separated: uniform, adaroll:UTILITY; settings as NAME@key=value.")
    ] = "uniform,adaroll:min_variance",
    every: Annotated[list[str] | None, typer.Option("--set", help="A setting of every method: key=value.")] = None,
    seeds: Annotated[str, typer.Option(help="How many, or a range such as 10-19.")] = "5",
    steps: Annotated[int, typer.Option(help="Steps of B x G rollouts.")] = 300,
    prompts: Annotated[int, typer.Option(help="B, prompts of a step.")] = 32,
    rollouts: Annotated[int, typer.Option(help="G, rollouts per prompt.")] = 8,
    until: Annotated[str, typer.Option(help="rollouts, steps or tokens: what ends a run.")] = "rollouts",
    tokens: Annotated[int | None, typer.Option(help="Tokens a step, where a run ends by tokens.")] = None,
    pool: Annotated[str, typer.Option(help="even, or skewed: most groups dead.")] = "even",
    pool_size: Annotated[int, typer.Option(help="Problems of the pool.")] = 1024,
    size: Annotated[str, typer.Option(help="tiny (0.1M parameters) or small (0.8M).")] = "tiny",
    target: Annotated[float, typer.Option(help="Accuracy at which the warm-up stops.")] = 0.4,
    evaluate_every: Annotated[int, typer.Option(help="Steps between evaluations.")] = 25,
    baseline: Annotated[str | None, typer.Option(help="Method the others are compared to.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; default one per core.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; resumes. Default below runs/lab.")] = None,
    as_json: AsJson = False,
) -> None:
    """Methods on a language model that trains in seconds, seed by seed, at equal rollouts."""
    from rollwise.cli import lab as command

    result = command.run(
        tasks=task or ["chains"],
        methods=methods,
        every=every or (),
        seeds=seeds,
        steps=steps,
        prompts=prompts,
        rollouts=rollouts,
        until=until,
        tokens=tokens,
        pool=pool,
        pool_size=pool_size,
        size=size,
        target=target,
        evaluate_every=evaluate_every,
        baseline=baseline,
        jobs=jobs,
        out=out,
    )
    if as_json:
        show([], result, True)
    else:
        show_tables(command.table(result))


@app.command()
def report(
    run_folder: Annotated[
        Path, typer.Argument(help="A folder that `rollwise train` wrote, or the start of its name: the latest.")
    ],
    as_json: AsJson = False,
) -> None:
    """Rebuild report.html of a run folder."""
    try:
        from rollwise.report import write
    except ImportError as error:
        raise RollwiseError(f"report: {error.name} is not installed; pip install 'rollwise[report]'") from None
    from rollwise.cli.run_state import NEVER_ENDED, never_ended
    from rollwise.report.run_search import find_run

    run = find_run(run_folder)
    page = str(write(run))
    lines = [f"run folder: {run} (the latest whose name starts with {run_folder.name})"] if run != run_folder else []
    if never_ended(run):
        lines.append(f"status: {NEVER_ENDED}")
    show([*lines, f"report: {page}"], {"run": str(run), "report": page}, as_json)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """What is installed, whether the trainer's hooks fit, and why an adapter cannot be used."""
    from rollwise.cli.doctor import examine

    findings = examine()
    if as_json:
        show([], {found.what: found.as_json() for found in findings}, True)
    else:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        for found in findings:
            table.add_row({True: "ok", False: "NO", None: ""}[found.ok], found.what, found.detail)
        show_tables(table, soft_wrap=True)
    if any(found.ok is False for found in findings):
        raise typer.Exit(1)


def add_commands() -> None:
    """Commands whose flags stand in modules of their own."""
    from rollwise.cli import analyze_flags, evaluate_flags, methods_flags, simulate_flags

    app.command("evaluate")(evaluate_flags.evaluate)
    app.command("methods")(methods_flags.methods)
    app.command("simulate")(simulate_flags.simulate)
    app.add_typer(analyze_flags.app, name="analyze")


add_commands()
