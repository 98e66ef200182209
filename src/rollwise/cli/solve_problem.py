"""A step to solve: its prompts and rollouts, and whether a method can solve it at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rollwise.allocators.priced import MOST_PER_PROMPT
from rollwise.solver.exact import MAX_PROMPTS, MEMORY_LIMIT, is_folded, table_bytes
from rollwise.solver.prompts import PromptStates
from rollwise.solver.uniform import uniform_value
from rollwise.suggest import nearest
from rollwise.types import RollwiseError
from rollwise.utilities import Utility

METHODS = ("exact", "index", "waves")
"""The best play; one rollout at a time by index; waves by the price plan."""

CAP = 64
"""Default of `max_per_prompt` for index and waves: larger groups are rarely worth their rollouts."""

WAVES = 4
"""Default number of waves."""

MOST_PROMPTS, MOST_ROLLOUTS = 10_000, 1_000_000
"""Of a step that is solved: beyond, even its bound takes minutes."""


@dataclass(frozen=True)
class Problem:
    """One step: B prompts of one prior, N rollouts."""

    utility: Utility
    prompts: int
    budget: int
    prior: tuple[float, float]
    max_per_prompt: int | None

    @property
    def cap(self) -> int:
        """Most rollouts of one prompt."""
        return min(self.budget, self.max_per_prompt or self.budget)

    @property
    def states(self) -> PromptStates:
        """The prompts before their first rollout."""
        return PromptStates.of(np.full(self.prompts, self.prior[0]), self.prior[1], self.cap)

    @property
    def uniform(self) -> float:
        """What an even allocation is worth."""
        terms = self.utility.table(-(-self.budget // self.prompts))
        return uniform_value(terms, self.utility.kind, self.prompts, self.budget, self.prior)


def check(
    method: str,
    waves: int | None,
    save: str | Path | None,
    draws: int,
    prompts: int,
    budget: int,
    max_per_prompt: int | None,
) -> None:
    """Raise RollwiseError for settings that do not go together."""
    if method not in METHODS:
        raise RollwiseError(f"method {method!r} is unknown: {nearest(method, METHODS)}")
    if waves is not None and (method != "waves" or waves < 1):
        raise RollwiseError(f"waves {waves}: give 1 or more, together with method waves")
    if save is not None and method == "waves":
        raise RollwiseError("save: waves are planned as they come and leave no table; use method exact or index")
    if prompts < 1 or budget < 1 or draws < 2:
        raise RollwiseError(f"prompts {prompts}, budget {budget}, draws {draws}: at least 1, 1 and 2")
    if prompts > MOST_PROMPTS or budget > MOST_ROLLOUTS:
        raise RollwiseError(
            f"prompts {prompts}, budget {budget}: give at most {MOST_PROMPTS} prompts and {MOST_ROLLOUTS} rollouts"
        )
    if waves is not None and waves > budget:
        raise RollwiseError(f"waves {waves}: more than the {budget} rollouts; give at most that many")
    if method != "exact" and budget > MOST_PER_PROMPT * prompts:
        raise RollwiseError(
            f"budget {budget}: method {method} reaches to {MOST_PER_PROMPT} rollouts a prompt; give at most "
            f"{MOST_PER_PROMPT * prompts}"
        )
    if max_per_prompt is not None and max_per_prompt * prompts < budget:
        raise RollwiseError(
            f"max_per_prompt {max_per_prompt} leaves no room: {prompts} prompts take {budget} rollouts only with at "
            f"least {-(-budget // prompts)}"
        )
    if method != "exact" and max_per_prompt is not None and max_per_prompt > MOST_PER_PROMPT:
        raise RollwiseError(f"max_per_prompt {max_per_prompt}: give at most {MOST_PER_PROMPT} with method {method}")


def check_size(problem: Problem) -> None:
    """Raise RollwiseError where the exact table would not fit in memory, with the settings that would do."""
    prompts, budget = problem.prompts, problem.budget
    if fits(problem, prompts, budget):
        return
    ways = []
    if budget <= MOST_PER_PROMPT * prompts:
        ways.append("--method index or --method waves")
    least, most = 0, budget
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if fits(problem, prompts, middle) else (least, middle)
    if least:
        ways.append(f"--budget {least}")
    fewer = next((count for count in range(prompts - 1, 1, -1) if fits(problem, count, count * budget // prompts)), 0)
    if fewer:
        ways.append(f"--prompts {fewer} --budget {fewer * budget // prompts}")
    reason = f"takes more than {MEMORY_LIMIT / 2**30:.3g} GiB"
    if prompts > MAX_PROMPTS:
        reason = f"is not made beyond {MAX_PROMPTS} prompts"
    raise RollwiseError(
        f"an exact table for {prompts} prompts and budget {budget} {reason}; "
        f"use {', or '.join(ways) or 'fewer prompts'}"
    )


def fits(problem: Problem, prompts: int, budget: int) -> bool:
    """Whether the exact table of that many prompts and rollouts fits in memory."""
    if prompts > MAX_PROMPTS:
        return False
    cap = min(problem.cap, budget)

    def bytes_of(folded: bool) -> float:
        return table_bytes(prompts, budget, cap, folded, True, MEMORY_LIMIT)

    # whether states fold is seen in the utility's table, which is itself too large where even folded ones would not fit
    return (
        bytes_of(True) <= MEMORY_LIMIT
        and bytes_of(is_folded(problem.utility.table(cap), problem.prior)) <= MEMORY_LIMIT
    )
