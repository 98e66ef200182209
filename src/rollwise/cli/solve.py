"""`rollwise solve`: what a step's allocation is worth, and what no allocation can beat; printing is the app's."""

from __future__ import annotations

import heapq
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.cli.solve_problem import CAP, WAVES, Problem, check, check_size
from rollwise.solver import cached_solve, save_table
from rollwise.solver.bounds import upper_bound
from rollwise.solver.exact import is_folded
from rollwise.solver.minimum import stand_in
from rollwise.solver.plan import plan_wave
from rollwise.solver.policies import evaluate_rule
from rollwise.solver.prices import index_table
from rollwise.solver.prompts import PromptStates
from rollwise.solver.queue import DIGITS
from rollwise.solver.states import count_states
from rollwise.types import FloatArray, IntArray, RollwiseError
from rollwise.utilities import get_utility

EVALUATED_STATES = 4_000_000
"""States up to which the index policy is evaluated exactly."""

DRAWS = 400
"""Steps simulated where it is not."""


def run(
    utility: str = "min_variance",
    prompts: int = 4,
    budget: int = 32,
    *,
    method: str = "exact",
    waves: int | None = None,
    max_per_prompt: int | None = None,
    advantage_form: str = "raw",
    prior: tuple[float, float] = (1.0, 1.0),
    draws: int = DRAWS,
    save: str | Path | None = None,
) -> dict[str, Any]:
    """What the chosen and the uniform allocation of a step are worth, and an upper bound on both; JSON-able.

    `value_error` is the standard error of a simulated value (`draws` steps), None where `value` is exact. `upper_bound`
    binds every policy within `max_per_prompt` (None: all policies), for waves those of at most as many waves, and
    `gap` is 1 - value / upper_bound (below 0 only by the error of a simulated value). `policy` is "uniform" where that
    is worth more than the index, as at tiny budgets. `gain` is value / uniform_value - 1, None where uniform is worth
    nothing. `seconds` is what finding the policy took (for waves: all decisions of a step), which for an exact table
    may have been in an earlier run (`rollwise.solver.cached_solve`).

    Args:
        waves: decisions to spend the budget in (method waves; default `WAVES`).
        max_per_prompt: most rollouts of one prompt; default no cap for exact, `CAP` otherwise.
        save: file to write the solved table or the table of indices to.

    Raises:
        RollwiseError: a bad argument, a table too large for memory, or a file that cannot be written.
    """
    chosen = get_utility(utility, advantage_form)
    if max_per_prompt is None and method != "exact":
        max_per_prompt = CAP
    check(method, waves, save, draws, prompts, budget, max_per_prompt)
    problem = Problem(chosen, prompts, budget, prior, max_per_prompt)
    if method == "exact":
        found = exact(problem, save)
    elif method == "index":
        found = index(problem, draws, save)
    else:
        found = in_waves(problem, waves or WAVES, draws)
    bound = upper_bound(chosen, problem.states, budget, None if method != "waves" else waves or WAVES).value
    value, uniform = found["value"], found["uniform_value"]
    return {
        "utility": chosen.name,
        "advantage_form": chosen.advantage_form,
        "prompts": prompts,
        "budget": budget,
        "prior": [float(x) for x in prior],
        "method": method,
        "waves": (waves or WAVES) if method == "waves" else None,
        "max_per_prompt": problem.max_per_prompt,
        **found,
        "upper_bound": bound,
        "gap": 1 - value / bound if bound > 0 else None,
        "gain": value / uniform - 1 if uniform > 0 else None,
    }


def exact(problem: Problem, save: str | Path | None) -> dict[str, Any]:
    """The optimum by backward induction."""
    check_size(problem)
    solved = cached_solve(problem.utility, problem.prompts, problem.budget, problem.prior, problem.max_per_prompt)
    if save is not None:
        save_table(solved, save)
    return {
        "policy": "exact",
        "value": solved.value,
        "value_error": None,
        "uniform_value": solved.uniform_value,
        "states": solved.states,
        "table_bytes": solved.choices.nbytes + solved.values.nbytes,
        "seconds": solved.seconds,
    }


def index(problem: Problem, draws: int, save: str | Path | None) -> dict[str, Any]:
    """The index policy; for a minimum that of its stand-in."""
    began = time.perf_counter()
    keys = index_table(stand_in(problem.utility), problem.prior, problem.cap)
    seconds = time.perf_counter() - began
    folded = is_folded(problem.utility.table(problem.cap), problem.prior)
    states = count_states(problem.prompts, problem.budget, problem.cap, folded, EVALUATED_STATES)
    if problem.prompts <= 16 and states <= EVALUATED_STATES:
        value, error = evaluate_rule(problem.utility, problem.prompts, problem.budget, keys, problem.prior).value, None
    else:
        rounded = np.round(keys, DIGITS)
        value, error = average([_play_index(problem, rounded, rng) for rng in _generators(draws)])
    if save is not None:
        _save_index(keys, problem, Path(save))
    keeps_index = value >= problem.uniform or error is not None
    return {
        "policy": "index" if keeps_index else "uniform",
        "value": value if keeps_index else problem.uniform,
        "value_error": error,
        "uniform_value": problem.uniform,
        "states": int(np.isfinite(keys).sum()),
        "table_bytes": keys.nbytes,
        "seconds": seconds,
    }


def in_waves(problem: Problem, waves: int, draws: int) -> dict[str, Any]:
    """The price plan in waves, simulated."""
    played = [_play_waves(problem, waves, rng) for rng in _generators(draws)]
    value, error = average([worth for worth, _, _ in played])
    most = max(len(sizes) for _, sizes, _ in played)
    sizes = [np.mean([s[i] if i < len(s) else 0 for _, s, _ in played]) for i in range(most)]
    return {
        "policy": "waves",
        "value": value,
        "value_error": error,
        "uniform_value": problem.uniform,
        "states": 0,
        "table_bytes": 0,
        "seconds": float(np.median([seconds for _, _, seconds in played])),
        "mean_wave_sizes": [round(float(size), 1) for size in sizes],
    }


def average(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _generators(draws: int) -> list[np.random.Generator]:
    return [np.random.default_rng([0, draw]) for draw in range(draws)]


def _play_index(problem: Problem, keys: FloatArray, rng: np.random.Generator) -> float:
    """Worth of one simulated step by a table of indices; `solver.queue` is the same for priors of any kind."""
    p, counts = rng.beta(*problem.prior, problem.prompts), np.zeros((2, problem.prompts), dtype=np.int64)
    heap = [(-keys[0, 0], 0, slot) for slot in range(problem.prompts)]
    for _ in range(problem.budget):
        slot = heap[0][2]
        counts[0 if rng.random() < p[slot] else 1, slot] += 1
        s, f = counts[:, slot].tolist()
        heapq.heapreplace(heap, (-keys[s, f], s + f, slot))
    return float(problem.utility.value(*counts))


def _play_waves(problem: Problem, waves: int, rng: np.random.Generator) -> tuple[float, list[int], float]:
    """Worth of one simulated step, its wave sizes, and the seconds its decisions took."""
    play, start = stand_in(problem.utility), problem.states
    p, right, wrong = rng.beta(*problem.prior, problem.prompts), start.successes.copy(), start.failures.copy()
    sizes: list[int] = []
    seconds = 0.0
    for left_waves in range(waves, 0, -1):
        left = problem.budget - sum(sizes)
        if left == 0:
            break
        room: IntArray = start.room - right - wrong
        states = PromptStates.of(start.a, start.b, room, successes=right, failures=wrong)
        began = time.perf_counter()
        wave = plan_wave(play, states, left, left_waves)
        seconds += time.perf_counter() - began
        hits = rng.binomial(wave, p)
        right, wrong = right + hits, wrong + wave - hits
        sizes.append(int(wave.sum()))
    return float(problem.utility.value(right, wrong)), sizes, seconds


def _save_index(keys: FloatArray, problem: Problem, path: Path) -> None:
    header = {
        "utility": problem.utility.name,
        "advantage_form": problem.utility.advantage_form,
        "prior": list(problem.prior),
        "max_per_prompt": problem.cap,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.savez(file, index=keys, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))
    except OSError as error:
        raise RollwiseError(f"save {path} cannot be written: {error.strerror or error}") from error
