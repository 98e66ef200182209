"""The published methods as arms of the leaderboard, and the uniform runs beside those that update more or less often.

A rule that saves rollouts makes more updates of them, one that collects or discards makes fewer, so equal rollouts alone
do not tell what it taught from how often it updated: uniform with as many rollouts, over about as many updates, does.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from leaderboard_files import updates

from rollwise.lab import Training, compare, measures, parse_arm
from rollwise.lab.published import loss_of, preset_of, published_arms
from rollwise.presets import FAMILIES

GROUPS = (2, 4, 5, 8, 10, 16, 20)
"""Rollouts per prompt of uniform at equal rollouts: divisors, so that the totals are equal."""
UNLIKE = 0.08
"""Relative difference in updates above which a method gets a uniform arm of its own."""


def unlike(known: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Arms of all published methods, and those that run in the lab exactly like another one, an arm of `known` first."""
    named = {parse_arm(arm).key: arm for arm in reversed(known)}
    arms, alike = [], {}
    for arm in published_arms():
        like = named.setdefault(parse_arm(arm).key, arm)
        arms.append(like)
        if like != arm:
            alike[arm] = like
    return tuple(dict.fromkeys(arms)), alike


def with_groups(size: Training, group: int) -> Training:
    """The same rollouts with other sizes of a prompt's group, so more or fewer steps."""
    steps, every = (each * size.rollouts / group for each in (size.steps, size.evaluate_every))
    assert steps.is_integer() and every.is_integer(), f"{group} rollouts a prompt do not divide the budget"
    return replace(size, rollouts=group, steps=int(steps), evaluate_every=int(every))


def matched_groups(results: Iterable[dict[str, Any]], size: Training) -> dict[str, int]:
    """Arm to the rollouts per prompt at which uniform makes about as many updates of the same rollouts."""
    found: dict[str, list[int]] = defaultdict(list)
    for result in results:
        found[result["arm"]].append(updates(result))
    own = {arm: float(np.mean(counts)) for arm, counts in found.items()}
    distance = {arm: math.log(max(1.0, count) / size.steps) for arm, count in own.items()}
    return {
        arm: min(GROUPS, key=lambda group, ratio=ratio: abs(math.log(size.rollouts / group) - ratio))
        for arm, ratio in distance.items()
        if abs(ratio) > UNLIKE
    }


def beside(results: Sequence[dict[str, Any]], rivals: dict[int, list[dict[str, Any]]], size: Training) -> list[Any]:
    """One row per arm of `matched_groups`: its paired difference to uniform at as many updates, averaged over tasks.

    `rivals` are uniform's runs by rollouts per prompt; seeds for which a task lacks one of the two are left out.
    """
    rows = []
    for arm, group in matched_groups(results, size).items():
        uniform = "uniform" if loss_of(arm) == "grpo" else f"uniform@loss={loss_of(arm)}"
        others = {(run["task"], run["seed"]): run for run in rivals.get(group, []) if run["arm"] == uniform}
        own = {(run["task"], run["seed"]): run for run in results if run["arm"] == arm}
        tasks = {task for task, _ in own}
        seeds = [seed for seed in sorted({seed for _, seed in own}) if all((t, seed) in others for t in tasks)]
        if not seeds:
            continue
        row = {
            "arm": arm,
            "baseline": f"{uniform}, {size.prompts} x {group}",
            "updates": np.mean([updates(run) for run in own.values()]).item(),
            "baseline_updates": np.mean([updates(run) for run in others.values()]).item(),
        }
        for name in ("final", "area"):
            gaps = [
                float(
                    np.mean([measures(own[task, seed])[name] - measures(others[task, seed])[name] for task in tasks])
                )
                for seed in seeds
            ]
            row[f"{name}_difference"] = compare(gaps)
        rows.append(row)
    return rows


def by_family(ranked: Sequence[str], taken: Sequence[str], alike: dict[str, str]) -> tuple[str, ...]:
    """The first of `ranked` of every family of methods that `taken` has none of."""
    family = {alike.get(arm, arm): method.family for arm in published_arms() if (method := preset_of(arm))}
    covered = {family.get(arm) for arm in taken}
    found: dict[str, str] = {}
    for arm in ranked:
        if arm in family and family[arm] not in covered:
            found.setdefault(family[arm], arm)
    return tuple(found[name] for name in FAMILIES if name in found)
