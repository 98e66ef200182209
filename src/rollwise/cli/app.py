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
    from rollwise.cli.compilation import announce_compilation

    announce_compilation()


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
    """The commands in the order of the help; the flags of most stand in modules of their own."""
    from rollwise.cli import (
        analyze_flags,
        evaluate_flags,
        lab_flags,
        methods_flags,
        plan_flags,
        simulate_flags,
        solve_flags,
        train_flags,
    )

    app.command("train", context_settings=train_flags.OPEN)(train_flags.train)
    app.command("report")(report)
    app.command("evaluate")(evaluate_flags.evaluate)
    app.command("methods")(methods_flags.methods)
    app.command("plan")(plan_flags.plan)
    app.command("solve")(solve_flags.solve)
    app.command("simulate")(simulate_flags.simulate)
    app.command("lab")(lab_flags.lab)
    app.add_typer(analyze_flags.app, name="analyze")
    app.command("doctor")(doctor)


add_commands()
