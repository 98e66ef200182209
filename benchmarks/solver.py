"""The exact solver against two plain ways to the same table, and the time to allocate one step.

    python benchmarks/solver.py [--output benchmarks/results/solver.json]

Plain ways, each up to the largest step it does here in minutes and a few GiB: (a) numpy, vectorised over all
C(N + 2B, 2B) states of a layer; (b) a recursion with a dictionary. Every case runs in a process of its own, which gives
its peak memory; the compiled solver is timed after compilation. Allocation is `AdaRoll.next_wave` on prompts whose priors
all differ, in four waves; processor time beside the clock says what other work on the machine cost.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from functools import cache
from importlib import metadata
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np

from rollwise.utilities import UTILITIES

UTILITY = "sum_variance"
CASES = (
    ("numpy", 3, 24),
    ("numpy", 4, 32),
    ("dictionary", 3, 24),
    ("dictionary", 4, 20),
    ("exact", 3, 24),
    ("exact", 4, 20),
    ("exact", 4, 32),
    ("exact", 5, 40),
    ("exact", 6, 48),
)
LOOK_UPS = (1, 16, 1024)
"""Blocks whose decision is looked up in one call."""
SHARES = ((4, 32), (5, 40), (6, 48))
"""Steps at which "not mixed first, then lowest variance" is set against the exact optimum of `min_variance`."""
INDEX_PROMPTS, INDEX_PER_PROMPT, INDEX_ROLLOUTS = 256, (1, 2, 4, 8, 16), 2**18
SIZES = (128, 256, 512, 1024, 2048, 4096)
PER_PROMPT, WAVES, STEPS = 8, 4, 9


def variance(s, f):
    n = np.maximum(s + f, 1)
    return s * f / (n * n)


def by_numpy(prompts: int, budget: int) -> tuple[float, int]:
    """All ordered states of a layer as rows of 2B counts, next layers found by their rank."""
    depth, value, states = 2 * prompts, None, 0
    binomials = np.array([[comb(n, k) for k in range(depth + 1)] for n in range(budget + depth + 2)])
    for t in range(budget, -1, -1):
        rows = _layer(t, depth)
        states += len(rows)
        s, f = rows[:, ::2].astype(np.int64), rows[:, 1::2].astype(np.int64)
        if value is None:
            value = variance(s, f).sum(axis=1)
            continue
        best = np.full(len(rows), -np.inf)
        for i in range(prompts):
            mean = (1 + s[:, i]) / (2 + s[:, i] + f[:, i])
            moved = []
            for column in (2 * i, 2 * i + 1):
                rows[:, column] += 1
                moved.append(value[_rank(rows, t + 1, binomials)])
                rows[:, column] -= 1
            best = np.maximum(best, mean * moved[0] + (1 - mean) * moved[1])
        value = best
    return float(value[0]), states


def _layer(total: int, depth: int) -> np.ndarray:
    """[C(t + d - 1, d - 1), d] all counts that sum to `total`, in lexicographic order."""
    size = comb(total + depth - 1, depth - 1)
    bars = np.fromiter(
        (bar for row in combinations(range(total + depth - 1), depth - 1) for bar in row), np.int16, size * (depth - 1)
    ).reshape(size, depth - 1)
    ends = np.full((size, 1), total + depth - 1, dtype=np.int16)
    return np.diff(bars, axis=1, prepend=np.int16(-1), append=ends) - np.int16(1)


def _rank(rows: np.ndarray, total: int, binomials: np.ndarray) -> np.ndarray:
    depth = rows.shape[1]
    rank, left = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), total)
    for i in range(depth - 1):
        rest = depth - 1 - i
        rank += binomials[left + rest, rest] - binomials[left - rows[:, i] + rest, rest]
        left = left - rows[:, i]
    return rank


def by_dictionary(prompts: int, budget: int) -> tuple[float, int]:
    """The recursion as it is written, every state met kept in a dictionary."""

    @cache
    def value(state: tuple[tuple[int, int], ...], left: int) -> float:
        if left == 0:
            return sum(s * f / max(s + f, 1) ** 2 for s, f in state)
        best = 0.0
        for i, (s, f) in enumerate(state):
            mean = (1 + s) / (2 + s + f)
            up, down = (*state[:i], (s + 1, f), *state[i + 1 :]), (*state[:i], (s, f + 1), *state[i + 1 :])
            best = max(best, mean * value(up, left - 1) + (1 - mean) * value(down, left - 1))
        return best

    found = value(((0, 0),) * prompts, budget)
    return found, value.cache_info().currsize


def by_solver(prompts: int, budget: int) -> tuple[float, int]:
    from rollwise.solver import solve

    solved = solve(UTILITY, prompts, budget, keep_values=False)
    return solved.value, solved.states


WAYS = {"numpy": by_numpy, "dictionary": by_dictionary, "exact": by_solver}


def run_case(way: str, prompts: int, budget: int) -> dict[str, object]:
    """One table, in this process."""
    WAYS[way](2, 4)
    began, used = time.perf_counter(), time.process_time()
    value, states = WAYS[way](prompts, budget)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    return {
        "way": way,
        "prompts": prompts,
        "budget": budget,
        "value": value,
        "states": states,
        "ordered_states": comb(budget + 2 * prompts, 2 * prompts),
        "seconds": round(seconds, 4),
        "cpu_seconds": round(cpu, 4),
        "states_per_cpu_second": round(states / cpu),
        "ordered_states_per_cpu_second": round(comb(budget + 2 * prompts, 2 * prompts) / cpu),
        "peak_memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def run_allocation(utility: str, size: int) -> dict[str, object]:
    """Milliseconds of each of the four decisions of a step: median over `STEPS` steps with new priors each."""
    from rollwise.allocators.adaroll import AdaRoll
    from rollwise.types import UNLIMITED, StepView

    rng, rule = np.random.default_rng(0), AdaRoll(utility)
    none = np.zeros(size, dtype=np.int64)
    taken: list[list[list[float]]] = []
    for _ in range(STEPS + 2):
        a, b = rng.gamma(2.0, 0.6, (2, size)) + 0.05
        p, s, f, times = rng.beta(a, b), none.copy(), none.copy(), []
        for waves_left in range(WAVES, 0, -1):
            left = PER_PROMPT * size - int((s + f).sum())
            view = StepView(
                tuple(map(str, range(size))), a, b, s, f, none, none, none, np.ones(size), none,
                np.full(size, UNLIMITED), left, waves_left,
            )  # fmt: skip
            began, used = time.perf_counter(), time.process_time()
            wave = rule.next_wave(view, rng)
            times.append([1000 * (time.perf_counter() - began), 1000 * (time.process_time() - used)])
            hits = rng.binomial(wave, p)
            s, f = s + hits, f + wave - hits
        assert (s + f).sum() == PER_PROMPT * size
        taken.append(times)
    wall, cpu = np.moveaxis(np.array(taken[2:]), 2, 0)
    medians = np.median(wall, axis=0)
    return {
        "utility": utility,
        "prompts": size,
        "milliseconds_per_decision": [round(float(x), 1) for x in medians],
        "least_milliseconds_per_decision": [round(float(x), 1) for x in wall.min(axis=0)],
        "cpu_milliseconds_per_decision": [round(float(x), 1) for x in np.median(cpu, axis=0)],
        "slowest_decision": round(float(medians.max()), 1),
        "milliseconds_per_step": round(float(np.median(wall.sum(axis=1))), 1),
        "cpu_milliseconds_per_step": round(float(np.median(cpu.sum(axis=1))), 1),
    }


def run_share(prompts: int, budget: int) -> dict[str, object]:
    """What the look-ahead rule for `min_variance` keeps of the exact optimum, and after one improvement step."""
    from rollwise.solver import solve
    from rollwise.solver.minimum import rule_keys
    from rollwise.solver.policies import evaluate_rule
    from rollwise.utilities import get_utility

    utility = get_utility("min_variance")
    best = solve(utility, prompts, budget, keep_values=False).value
    found = evaluate_rule(utility, prompts, budget, rule_keys(budget))
    return {
        "prompts": prompts,
        "budget": budget,
        "optimum": best,
        "rule_share": round(found.value / best, 4),
        "improved_share": round(found.improved / best, 4),
    }


def run_index(per_prompt: int) -> dict[str, object]:
    """The index policy for `sum_variance` as a share of the bound, with its standard error, over `INDEX_ROLLOUTS`."""
    from rollwise.solver.prices import price_bound
    from rollwise.solver.prompts import PromptStates
    from rollwise.solver.queue import IndexQueue
    from rollwise.utilities import get_utility

    utility, size, rng, worth = get_utility(UTILITY), INDEX_PROMPTS, np.random.default_rng(0), []
    prompts = PromptStates.of(np.ones(size), 1.0, 64)
    for _ in range(INDEX_ROLLOUTS // (size * per_prompt)):
        p, s, f = rng.random(size), np.zeros(size, dtype=int), np.zeros(size, dtype=int)
        queue = IndexQueue(utility, prompts)
        for _ in range(per_prompt * size):
            slot = queue.next()
            hit = bool(rng.random() < p[slot])
            s[slot], f[slot] = s[slot] + hit, f[slot] + (not hit)
            queue.observe(slot, hit)
        worth.append(utility.value(s, f))
    bound = price_bound(utility, prompts, per_prompt * size).value
    error = float(np.std(worth, ddof=1) / np.sqrt(len(worth)))
    return {
        "prompts": size,
        "per_prompt": per_prompt,
        "share_of_bound": round(float(np.mean(worth)) / bound, 4),
        "standard_error": round(error / bound, 4),
    }


def run_look_up(blocks: int) -> dict[str, object]:
    """Microseconds of one decision of a solved table of 4 prompts and 32 rollouts, `blocks` states in one call."""
    from rollwise.solver import solve

    solved, rng = solve(UTILITY, 4, 32), np.random.default_rng(0)
    s, f = rng.integers(0, 4, (2, blocks, 4))
    calls, taken = max(1, 20_000 // blocks), []
    solved.actions(s, f)
    for _ in range(5):
        began, used = time.perf_counter(), time.process_time()
        for _ in range(calls):
            solved.actions(s, f)
        taken.append((time.perf_counter() - began, time.process_time() - used))
    wall, cpu = np.median(taken, axis=0) * 1e6 / (calls * blocks)
    return {
        "blocks": blocks,
        "microseconds_per_decision": round(float(wall), 3),
        "cpu_microseconds_per_decision": round(float(cpu), 3),
    }


def describe_machine() -> dict[str, object]:
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "load_average": [round(x, 2) for x in os.getloadavg()],
        "threads": {name: os.environ.get(name) for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")},
        "commit": commit,
        "versions": {name: metadata.version(name) for name in ("rollwise", "numpy", "numba")}
        | {"python": platform.python_version()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/solver.json"))
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        kind, name, *numbers = arguments.case
        runs = {"table": run_case, "allocation": run_allocation, "share": run_share, "index": run_index}
        runs["look_up"] = run_look_up
        values = [name, *map(int, numbers)] if kind in ("table", "allocation") else map(int, (name, *numbers))
        print(json.dumps(runs[kind](*values)))
        return

    def start(*case: object) -> dict[str, object]:
        command = [sys.executable, __file__, "--case", *map(str, case)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(done.stdout.strip(), flush=True)
        return json.loads(done.stdout.splitlines()[-1])

    result: dict[str, object] = {"command": "python benchmarks/solver.py", "machine": describe_machine()}
    result["tables"] = [start("table", *case) for case in CASES]
    result["allocation"] = [
        start("allocation", utility, size)
        for utility in (UTILITY, *sorted(set(UTILITIES) - {UTILITY}))
        for size in (SIZES if utility == UTILITY else (128, 1024, 4096))
    ]
    result["look_up"] = [start("look_up", blocks) for blocks in LOOK_UPS]
    result["min_variance_rule"] = [start("share", *case) for case in SHARES]
    result["index_policy"] = [start("index", per_prompt) for per_prompt in INDEX_PER_PROMPT]
    times = {row["prompts"]: row["cpu_milliseconds_per_step"] for row in result["allocation"][: len(SIZES)]}
    slope = np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0]
    result["growth"] = {"cpu_milliseconds_per_step": times, "exponent_of_prompts": round(float(slope), 2)}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {arguments.output}; exponent of B {slope:.2f}")


if __name__ == "__main__":
    main()
