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
import resource
import subprocess
import sys
import time
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
from machine import describe
from plain_tables import by_dictionary, by_numpy

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
    ("unfolded", 3, 24),
    ("unfolded", 4, 32),
)
LOOK_UPS = (1, 16, 1024)
"""Blocks whose decision is looked up in one call."""
SHARES = ((4, 32), (5, 40), (6, 48))
"""Steps at which "not mixed first, then lowest variance" is set against the exact optimum of `min_variance`."""
INDEX_PROMPTS, INDEX_PER_PROMPT, INDEX_ROLLOUTS = 256, (1, 2, 4, 8, 16), 2**18
SIZES = (128, 256, 512, 1024, 2048, 4096)
PER_PROMPT, WAVES, STEPS = 8, 4, 9
NEYMAN = (1024, 100_000)


def by_solver(prompts: int, budget: int) -> tuple[float, int]:
    from rollwise.solver import solve

    solved = solve(UTILITY, prompts, budget, keep_values=False)
    return solved.value, solved.states


def by_solver_unfolded(prompts: int, budget: int) -> tuple[float, int]:
    """A utility that tells success from failure, so that states are not folded."""
    from rollwise.solver import solve

    solved = solve("sum_max_reward", prompts, budget, keep_values=False)
    return solved.value, solved.states


WAYS = {"numpy": by_numpy, "dictionary": by_dictionary, "exact": by_solver, "unfolded": by_solver_unfolded}


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
        "cpu_slowest_decision": round(float(np.median(cpu, axis=0).max()), 1),
        "milliseconds_per_step": round(float(np.median(wall.sum(axis=1))), 1),
        "cpu_milliseconds_per_step": round(float(np.median(cpu.sum(axis=1))), 1),
    }


def run_neyman(size: int) -> dict[str, object]:
    """Neyman allocation of a step of beliefs that all differ: its first and its last decision, and what they take."""
    from rollwise.allocators.neyman import Neyman
    from rollwise.types import UNLIMITED, StepView

    rng, none = np.random.default_rng(0), np.zeros(size, dtype=np.int64)
    a, b = rng.gamma(2.0, 0.6, (2, size)) + 0.05
    view = StepView(
        tuple(map(str, range(size))), a, b, none, none, none, none, none, np.ones(size), none,
        np.full(size, UNLIMITED), PER_PROMPT * size, WAVES,
    )  # fmt: skip
    rule, seconds = Neyman(), []
    for waves_left in (WAVES, 1):
        used = time.process_time()
        rule.next_wave(replace(view, waves_left=waves_left), rng)
        seconds.append(round(time.process_time() - used, 2))
    return {
        "prompts": size,
        "cpu_seconds_first_decision": seconds[0],
        "cpu_seconds_last_decision": seconds[1],
        "peak_memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
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
    return describe() | {
        "cores": len(os.sched_getaffinity(0)),
        "load_average": [round(x, 2) for x in os.getloadavg()],
        "threads": {name: os.environ.get(name) for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/solver.json"))
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        kind, name, *numbers = arguments.case
        runs = {"table": run_case, "allocation": run_allocation, "share": run_share, "index": run_index}
        runs |= {"look_up": run_look_up, "neyman": run_neyman}
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
    result["neyman"] = [start("neyman", size) for size in NEYMAN]
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
