"""What `rollwise plan` prints for people."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table

from rollwise.cli.plan import SHARES
from rollwise.cli.plan_verdict import Z

SHOWN = (0, 50, 90, 100)
N_LEGEND = "n: rollouts of a prompt in a step; 0 % the fewest, 50 % the median, 90 % nine in ten get at most so many"
WEIGHT_LEGEND = (
    "w(p): weight of a prompt's gradient, by its success rate p, in the expected update ({advantage}); the same in every "
    "row: all prompts count alike"
)
CEILING_LEGEND = (
    "variance against uniform: the least variance of the gradient estimate that any allocation reaches, uniform's "
    "being 1; below 1 is better"
)


def tables(result: dict[str, Any]) -> Group:
    """The result for a terminal."""
    methods: dict[str, Any] = result["methods"]
    shape = Table("method", "dead\nprompts", "informative\nrollouts", "unsolved\nprompts", "n at 0, 50,\n90, 100 %")
    for name, found in methods.items():
        shares = [
            f"{found[key]:.1%}" + (f" ±{Z * error:.1%}" if (error := found["standard_error"][key]) else "")
            for key in SHARES
        ]
        shape.add_row(name, *shares, "  ".join(f"{found['n'][str(q)]:g}" for q in SHOWN))
    curves = Table("w(p)", *methods)
    rates = sorted({rate for found in methods.values() for rate in found["weight"]["rates"]})
    for rate in rates:
        row = []
        for found in methods.values():
            at = dict(zip(found["weight"]["rates"], zip(found["weight"]["weight"], found["weight"]["high"])))
            value, high = at.get(rate, (np.nan, np.nan))
            row.append(f"{value:.2f}" + (f" ±{high - value:.2f}" if high > value else ""))
        curves.add_row(f"p = {rate:.3f}", *row)
    best = Table("variance against uniform, same rollouts", "knows p", "learns p")
    for found in result["ceilings"]:
        best.add_row(f"objective {found['objective']}", f"{found['oracle']:.3f}", f"{found['belief']:.3f}")
    head = (
        f"{result['source']}: mean rate {result['mean_rate']:.3f}; a step of {result['prompts']} prompts x "
        f"{result['rollouts_per_prompt']} rollouts = {result['budget']}"
    )
    goal = result["objective"]
    extra: list[Any] = []
    if goal["name"] not in ("none", "mean"):
        weights = Table(f"weight of {goal['name']}", "asked", *(f"after {n}" for n in goal["applied"]))
        for k, rate in enumerate(goal["rates"]):
            weights.add_row(
                f"p = {rate:g}", f"{goal['asked'][k]:.2f}", *(f"{row[k]:.2f}" for row in goal["applied"].values())
            )
        extra.append(weights)
    notes = [f"warning: {line}" for line in result["warnings"]]
    weight_legend = WEIGHT_LEGEND.format(advantage=result["advantage"])
    return Group(
        head, shape, N_LEGEND, *result["verdicts"], curves, weight_legend, *extra, best, CEILING_LEGEND, *notes
    )
