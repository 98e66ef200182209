"""The flags of `rollwise solve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rollwise.cli.output import AsJson, show


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
