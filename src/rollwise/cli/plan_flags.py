"""The flags of `rollwise plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rollwise.cli.output import AsJson, show, show_tables


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
