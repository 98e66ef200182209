"""The flags of `rollwise analyze`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

app = typer.Typer(help="Analyses that need no model: difficulty, allocation, beliefs.", no_args_is_help=True)
Pools = Annotated[list[str] | None, typer.Option("--pool", help="beta:a,b, hard, rlvr, or a file; several times.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]


@app.command()
def difficulty(
    pool: Pools = None,
    limit: Annotated[int, typer.Option(help="Rollouts after which a prompt counts as unsolved.")] = 128,
    as_json: AsJson = False,
) -> None:
    """Rollouts until first solved, and the entropy of their histogram."""
    from rollwise.cli import analyze
    from rollwise.cli.output import show_tables

    show(result := analyze.run_difficulty(pool or ["beta:1,1", "hard", "easy", "rlvr"], limit), as_json)
    if not as_json:
        show_tables(analyze.difficulty_table(result))


@app.command()
def allocation(
    pool: Pools = None,
    prompts: Annotated[int, typer.Option(help="B, prompts of a step.")] = 4,
    budget: Annotated[int, typer.Option(help="N, rollouts of a step.")] = 32,
    steps: Annotated[int, typer.Option(help="Steps per utility and pool.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of prompts and coins.")] = 0,
    waves: Annotated[int | None, typer.Option(help="Decisions per step; default one rollout at a time.")] = None,
    as_json: AsJson = False,
) -> None:
    """Who gets how many rollouts under each utility, and whether what was published holds."""
    from rollwise.cli import analyze
    from rollwise.cli.output import show_tables

    result = analyze.run_allocation(pool or ["hard", "easy"], prompts, budget, steps, seed, waves)
    show(result, as_json)
    if not as_json:
        show_tables(analyze.allocation_table(result))


@app.command()
def beliefs(
    log: Annotated[str, typer.Option(help="rlvr, or a training log: a file with several visits a prompt.")] = "rlvr",
    discount: Annotated[list[float] | None, typer.Option(help="Further discounts to try; several times.")] = None,
    as_json: AsJson = False,
) -> None:
    """How well beliefs predict a prompt's next visit in a training log."""
    from rollwise.cli import analyze
    from rollwise.cli.output import show_tables

    show(result := analyze.run_beliefs(log, discount or ()), as_json)
    if not as_json:
        show_tables(analyze.beliefs_table(result))


def show(result: dict[str, Any], as_json: bool) -> None:
    """The result as JSON, where that was asked for."""
    if as_json:
        from rollwise.cli.output import show as print_result

        print_result([], result, True)
