"""The flags of `rollwise lab`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rollwise.cli.output import AsJson, show, show_tables


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
