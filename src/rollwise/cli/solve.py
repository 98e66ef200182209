"""`rollwise solve`: the exact optimum of a step as a plain dictionary; printing is the app's."""

from __future__ import annotations

from typing import Any

from rollwise.solver import cached_solve


def run(
    utility: str = "min_variance",
    prompts: int = 4,
    budget: int = 32,
    *,
    advantage_form: str = "raw",
    prior: tuple[float, float] = (1.0, 1.0),
    n_max: int | None = None,
) -> dict[str, Any]:
    """What the best and the uniform allocation of a step are worth, JSON-able.

    `gain` is value / uniform_value - 1, None where uniform is worth nothing; `seconds` is what solving took, which
    may have been in an earlier run (`rollwise.solver.cached_solve`).

    Raises:
        RollwiseError: a bad argument, or a table too large for memory.
    """
    solved = cached_solve(utility, prompts, budget, prior, n_max, advantage_form=advantage_form)
    return {
        "utility": solved.utility.name,
        "advantage_form": solved.utility.advantage_form,
        "prompts": solved.prompts,
        "budget": solved.budget,
        "prior": list(solved.prior),
        "n_max": n_max,
        "value": solved.value,
        "uniform_value": solved.uniform_value,
        "gain": solved.value / solved.uniform_value - 1 if solved.uniform_value > 0 else None,
        "states": solved.states,
        "seconds": solved.seconds,
    }
