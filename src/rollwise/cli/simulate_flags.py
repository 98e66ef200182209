"""The flags of `rollwise simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def simulate(
    methods: Annotated[
        str, typer.Option(help="Comma-separated: uniform, a utility, an allocator; settings as NAME@key=value.")
    ] = "uniform,min_variance,sum_variance",
    pool: Annotated[
        str, typer.Option(help="beta:a,b, hard, easy, rlvr, math_cot8, or a file of counts.")
    ] = "beta:1,1",
    prompts: Annotated[int, typer.Option(help="B, prompts of a step.")] = 32,
    budget: Annotated[int, typer.Option(help="N, rollouts of a step.")] = 256,
    waves: Annotated[int, typer.Option(help="Decisions per step.")] = 4,
    steps: Annotated[int, typer.Option(help="Steps of an arm.")] = 100,
    seeds: Annotated[str, typer.Option(help="How many, or a range such as 10-19.")] = "2",
    n_min: Annotated[int, typer.Option(help="Fewest rollouts per prompt.")] = 2,
    n_max: Annotated[int | None, typer.Option(help="Most rollouts per prompt.")] = None,
    prior: Annotated[str, typer.Option(help="Beta a,b, empirical or carried.")] = "1,1",
    advantage: Annotated[str, typer.Option(help="Estimator of the advantages.")] = "grpo",
    weighting: Annotated[str, typer.Option(help="per_rollout or per_prompt.")] = "per_rollout",
    population: Annotated[int, typer.Option(help="Prompts that are met again; 0: new ones in every step.")] = 0,
    drift: Annotated[float, typer.Option(help="Logit rate of learning; needs --population.")] = 0.0,
    transfer: Annotated[float, typer.Option(help="Share of a mean learning step that all prompts get.")] = 0.0,
    replay: Annotated[
        bool, typer.Option("--replay", help="Rates move as in the training log named by --pool.")
    ] = False,
    false_positive: Annotated[float, typer.Option(help="Chance that a failure passes the verifier.")] = 0.0,
    false_negative: Annotated[float, typer.Option(help="Chance that a success is refused.")] = 0.0,
    unknown: Annotated[float, typer.Option(help="Chance that the verifier says nothing.")] = 0.0,
    lost: Annotated[float, typer.Option(help="Chance that a rollout never comes back.")] = 0.0,
    delay: Annotated[float, typer.Option(help="Spread of durations (deviation of their logarithm).")] = 0.0,
    straggler: Annotated[float, typer.Option(help="Share of rollouts that take ten times as long.")] = 0.0,
    patience: Annotated[float | None, typer.Option(help="Median durations a wave is waited for.")] = None,
    deadline: Annotated[float | None, typer.Option(help="Median durations the last wave is waited for.")] = None,
    baseline: Annotated[str | None, typer.Option(help="Method the others are compared to.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for results.jsonl and .parquet; resumes.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; default one per core.")] = None,
    ledgers: Annotated[bool, typer.Option("--ledgers/--no-ledgers", help="Check every arm's account.")] = True,
    picture: Annotated[Path | None, typer.Option(help="PNG file to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")] = False,
) -> None:
    """Methods on prompts as coins, at equal rollouts and without a model."""
    from rollwise.cli import simulate as command
    from rollwise.cli.output import show, show_tables

    flaws = ("false_positive", "false_negative", "unknown", "lost", "delay", "straggler", "patience", "deadline")
    given = dict(locals())
    switches = {name: given[name] for name in flaws}
    rest = {
        name: value
        for name, value in given.items()
        if name not in (*flaws, "flaws", "command", "show", "show_tables", "as_json")
    }
    result = command.run(**rest, imperfections=switches, progress=True)
    if as_json:
        show([], result, True)
    else:
        show_tables(command.tables(result))
