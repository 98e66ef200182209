"""`rollwise analyze difficulty | allocation | beliefs`: pools, pictures of allocations, how well beliefs predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Column, Table

from rollwise.beliefs import CarriedPrior
from rollwise.cli.solve_problem import MOST_PROMPTS
from rollwise.simulate.allocation import Picture, pictures, statements
from rollwise.simulate.difficulty import difficulty
from rollwise.simulate.pools import parse_pool
from rollwise.simulate.recorded import read_log
from rollwise.simulate.replay import predictors, score_log
from rollwise.types import RollwiseError

QUANTILES = (0, 10, 50, 90, 100)


def run_difficulty(pools: Sequence[str], limit: int = 128) -> dict[str, Any]:
    """Histogram and entropy of each pool, JSON-able.

    Raises:
        RollwiseError: a word that is no pool, or a limit that is no power of two.
    """
    return {"limit": limit, "pools": {name: asdict(difficulty(parse_pool(name), limit)) for name in pools}}


def difficulty_table(result: dict[str, Any]) -> Group:
    """The result for a terminal."""
    found = result["pools"]
    bins = next(iter(found.values()))["bins"]
    table = Table("first solved at rollout", *found)
    for k, name in enumerate(bins):
        table.add_row(name, *(f"{entry['shares'][k]:.1%}" for entry in found.values()))
    table.add_row("more than 8, or never", *(f"{share_above(entry, 8):.1%}" for entry in found.values()))
    table.add_row("entropy", *(f"{entry['entropy']:.3f}" for entry in found.values()))
    table.add_row("rollouts per prompt", *(f"{entry['rollouts']:.1f}" for entry in found.values()))
    return Group(table)


def share_above(entry: dict[str, Any], end: int) -> float:
    """Share of prompts first solved after `end` (the end of a bin) or not at all."""
    starts = [int(name.split("-")[0]) if name != "unsolved" else end + 1 for name in entry["bins"]]
    return float(sum(share for share, start in zip(entry["shares"], starts, strict=True) if start > end))


def run_allocation(
    pools: Sequence[str], prompts: int = 4, budget: int = 32, steps: int = 200, seed: int = 0, waves: int | None = None
) -> dict[str, Any]:
    """Allocation per utility on each pool, and the published statements, JSON-able.

    Raises:
        RollwiseError: a word that is no pool, or a step that cannot be run.
    """
    drawn = draw_pictures(pools, prompts, budget, steps, seed, waves)
    return check_pictures(drawn, prompts, budget, steps, seed, waves)


def draw_pictures(
    pools: Sequence[str], prompts: int, budget: int, steps: int, seed: int, waves: int | None
) -> dict[str, dict[str, Picture]]:
    """Pool -> utility -> what every prompt got.

    Raises:
        RollwiseError: a word that is no pool, or a step that cannot be run.
    """
    for name, value, lowest in (("prompts", prompts, 1), ("steps", steps, 1), ("seed", seed, 0), ("waves", waves, 1)):
        if value is not None and value < lowest:
            raise RollwiseError(f"{name}: {value}; give {lowest} or more")
    if prompts > MOST_PROMPTS:
        raise RollwiseError(f"prompts: {prompts}; give at most {MOST_PROMPTS}")
    return {name: pictures(parse_pool(name), prompts, budget, steps=steps, seed=seed, waves=waves) for name in pools}


def check_pictures(
    drawn: dict[str, dict[str, Picture]], prompts: int, budget: int, steps: int, seed: int, waves: int | None
) -> dict[str, Any]:
    """The pictures in numbers, and the published statements checked on them."""
    found = {
        name: {
            "utilities": {utility: summary(seen) for utility, seen in own.items()},
            "statements": [asdict(each) for each in statements(own, prompts, budget)],
        }
        for name, own in drawn.items()
    }
    return {"prompts": prompts, "budget": budget, "steps": steps, "seed": seed, "waves": waves, "pools": found}


def summary(seen: Picture) -> dict[str, Any]:
    """Quantiles of n, and the mean n of prompts by their mean reward."""
    kinds = {
        "never": seen.reward == 0,
        "mixed": (seen.reward > 0) & (seen.reward < 1),
        "always": seen.reward == 1,
    }
    return {
        "n": {str(q): float(np.percentile(seen.counts, q)) for q in QUANTILES},
        "share": {name: float(which.mean()) for name, which in kinds.items()},
        "mean_n": {name: float(seen.counts[which].mean()) if which.any() else 0.0 for name, which in kinds.items()},
    }


def allocation_table(result: dict[str, Any]) -> Group:
    """The result for a terminal."""
    parts: list[Any] = []
    for name, found in result["pools"].items():
        shape = Table(
            Column(name, no_wrap=True), "n at 0, 10, 50, 90, 100 %", "n if never solved", "if mixed", "if always"
        )
        for utility, entry in found["utilities"].items():
            shape.add_row(
                utility,
                "  ".join(f"{value:g}" for value in entry["n"].values()),
                *(
                    f"{entry['mean_n'][kind]:.1f} ({entry['share'][kind]:.0%})"
                    for kind in ("never", "mixed", "always")
                ),
            )
        said = Table("published", "found here", "")
        for each in found["statements"]:
            said.add_row(each["claim"], each["found"], "holds" if each["holds"] else "DEVIATES")
        parts += [shape, said]
    return Group(*parts)


def run_beliefs(log: str = "rlvr", discounts: Sequence[float] = ()) -> dict[str, Any]:
    """One-step-ahead scores of every belief on a log, JSON-able, best first.

    Raises:
        RollwiseError: a file that is no log of several visits, a discount out of range.
    """
    sources = predictors() | {f"carried_{value:g}": CarriedPrior(discount=value) for value in discounts}
    scores = sorted(score_log(read_log(log), sources), key=lambda score: score.log_loss)
    return {"log": log, "visits": scores[0].visits, "scores": [asdict(score) for score in scores]}


def beliefs_table(result: dict[str, Any]) -> Group:
    """The result for a terminal."""
    table = Table("belief", "log loss per visit", "per rollout", "squared error")
    for score in result["scores"]:
        table.add_row(
            score["name"],
            f"{score['log_loss']:.3f} ±{1.96 * score['error']:.3f}",
            f"{score['rollout_log_loss']:.4f}",
            f"{score['squared_error']:.4f}",
        )
    return Group(f"{result['log']}: {result['visits']} visits predicted one step ahead", table)
