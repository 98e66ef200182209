"""The flags of `rollwise analyze`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

app = typer.Typer(
    help="Analyses of prompts, rules and runs: difficulty, allocation, beliefs, curves, gain, dynamics.",
    no_args_is_help=True,
)
Pools = Annotated[list[str] | None, typer.Option("--pool", help="beta:a,b, hard, rlvr, or a file; several times.")]
Figure = Annotated[str | None, typer.Option("--figure", help="Also draw it into this PNG file.")]
Folder = Annotated[str, typer.Argument(help="Folder that rollwise lab wrote.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]


@app.command()
def difficulty(
    pool: Pools = None,
    config: Annotated[str | None, typer.Option(help="Sample the model on the data of this train file.")] = None,
    model: Annotated[str | None, typer.Option(help="Sample this model: embedded, a folder, a hub id.")] = None,
    data: Annotated[str | None, typer.Option(help="On these prompts: chains, a file, a hub id.")] = None,
    prompts: Annotated[int, typer.Option(help="Prompts to sample, with a model.")] = 200,
    limit: Annotated[int, typer.Option(help="Rollouts after which a prompt counts as unsolved.")] = 128,
    figure: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Rollouts until first solved, and the entropy of their histogram; of pools, or of a model that is sampled."""
    from rollwise.cli import analyze, analyze_figures
    from rollwise.cli.output import show_tables

    check(figure)
    if config or model or data:
        from rollwise.cli.analyze_model import run_model
        from rollwise.types import RollwiseError

        if pool:
            raise RollwiseError("--pool: not with a model; give either --pool or --config, --model and --data")
        own = {"model": model, "data.source": data}
        told = {key: value for key, value in own.items() if value is not None}
        result = run_model(config, told, prompts, limit, report=say)
    else:
        result = analyze.run_difficulty(pool or ["beta:1,1", "hard", "easy", "rlvr"], limit)
    show(result, as_json)
    if not as_json:
        show_tables(analyze.difficulty_table(result))
    if figure is not None:
        analyze_figures.draw_difficulty(result, figure)


def say(prompts: int, rollouts: int) -> None:
    """A line about the next bin, on standard error."""
    typer.echo(f"{prompts} prompts unsolved, {rollouts} more rollouts each", err=True)


@app.command()
def allocation(
    pool: Pools = None,
    prompts: Annotated[int, typer.Option(help="B, prompts of a step.")] = 4,
    budget: Annotated[int, typer.Option(help="N, rollouts of a step.")] = 32,
    steps: Annotated[int, typer.Option(help="Steps per utility and pool.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of prompts and coins.")] = 0,
    waves: Annotated[int | None, typer.Option(help="Decisions per step; default one rollout at a time.")] = None,
    figure: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Who gets how many rollouts under each utility, and whether what was published holds."""
    from rollwise.cli import analyze, analyze_figures
    from rollwise.cli.output import show_tables

    check(figure)
    drawn = analyze.draw_pictures(pool or ["hard", "easy"], prompts, budget, steps, seed, waves)
    result = analyze.check_pictures(drawn, prompts, budget, steps, seed, waves)
    show(result, as_json)
    if not as_json:
        show_tables(analyze.allocation_table(result))
    if figure is not None:
        analyze_figures.draw_allocation(drawn, budget / prompts, figure)


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


@app.command()
def curves(folder: Folder, figure: Annotated[str, typer.Option(help="The PNG file to draw.")] = "curves.png") -> None:
    """Test accuracy against rollouts spent for every method of a lab folder, as a figure."""
    from rollwise.cli.analyze_figures import draw_curves
    from rollwise.lab.results import read_results

    check(figure)
    draw_curves(read_results(folder)[1], figure)
    typer.echo(figure)


@app.command()
def gain(
    folder: Annotated[list[str], typer.Argument(help="Folders that rollwise lab wrote.")],
    limit: Annotated[int, typer.Option(help="Rollouts after which a prompt counts as unsolved.")] = 128,
    figure: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Gain over uniform beside the entropy of the task's difficulty, from runs of the lab."""
    from rollwise.cli import analyze_figures, analyze_lab
    from rollwise.cli.output import show_tables

    check(figure)
    show(result := analyze_lab.run_gain(folder, limit), as_json)
    if not as_json:
        show_tables(analyze_lab.gain_table(result))
    if figure is not None:
        analyze_figures.draw_gain(result, figure)


@app.command()
def dynamics(
    folder: Annotated[str, typer.Argument(help="Folder that rollwise lab or rollwise train wrote.")],
    figure: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Confidence, mean absolute advantage and token update weight over training, from runs of the lab or of train."""
    from rollwise.cli import analyze_figures, analyze_lab
    from rollwise.cli.output import show_tables

    check(figure)
    show(result := analyze_lab.run_dynamics(folder), as_json)
    if not as_json:
        show_tables(analyze_lab.dynamics_table(result))
    if figure is not None:
        analyze_figures.draw_dynamics(result, figure)


def check(figure: str | None) -> None:
    """Raise `RollwiseError` where a figure is wanted and cannot be written, before the work is done."""
    if figure is not None:
        from rollwise.cli.picture import check_picture

        check_picture(figure, "figure")


def show(result: dict[str, Any], as_json: bool) -> None:
    """The result as JSON, where that was asked for."""
    if as_json:
        from rollwise.cli.output import show as print_result

        print_result([], result, True)
