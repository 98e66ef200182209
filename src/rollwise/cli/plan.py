"""`rollwise plan`: what a step on a population of prompts will look like, before any GPU time.

Uniform allocation is computed, other methods are simulated with coins; printing is the app's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.advantages import get_advantage
from rollwise.allocators import Allocator, Uniform, get_allocator
from rollwise.allocators.priced import MOST_PER_PROMPT
from rollwise.beliefs import FLAT, parse_prior
from rollwise.ceiling import ceiling
from rollwise.cli.picture import check_picture
from rollwise.cli.plan_input import read_pool
from rollwise.cli.plan_verdict import verdicts
from rollwise.effective_weight import WeightCurve, exact_weight, measured_weight, play_coins
from rollwise.objectives import expected_weight, get_objective
from rollwise.pool import Pool
from rollwise.types import RollwiseError
from rollwise.utilities import UTILITIES

METHODS = ("uniform", "min_variance", "sum_variance")
EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
QUANTILES = (0, 25, 50, 75, 90, 100)
SHARES = ("dead_prompt_share", "informative_rollout_share", "unsolved_share")
SMALL_GROUP = 4
FEWEST = 16
"""Times a rate is met before its w(p) is believed."""
MOST_PROMPTS = 100_000
"""Of a step that is planned: beyond, one step alone takes minutes."""
LEAST = 1 / 2000
"""Share of the pool below which a rate has no w(p): the steps that are played would hardly meet one such prompt."""


def run(
    *,
    rates: str | None = None,
    counts: str | Path | None = None,
    prior: str | None = None,
    visit: int = 0,
    prompts: int = 32,
    rollouts: int = 8,
    methods: Sequence[str] = METHODS,
    objective: Any = "none",
    advantage: str = "dr_grpo",
    belief: str = "1,1",
    waves: int = 4,
    n_min: int = 2,
    draws: int | None = None,
    seed: int = 0,
    picture: str | Path | None = None,
) -> dict[str, Any]:
    """Expected shares, allocation shape, weight curves and ceilings of a step, JSON-able.

    Args:
        rates, counts, prior: the population, one of them (`plan_input`); Beta(1,1) without.
        visit: which visit of a file that has several.
        prompts, rollouts: B and G; the step spends B x G.
        methods: "uniform", a utility of AdaRoll, or any allocator's name.
        objective: what is ascended, for the ceiling and the weights from beliefs.
        advantage: estimator that w(p) is for.
        belief: prior the methods open with, "a,b", or "pool" for the one fitted to the population.
        draws: simulated steps, by default as many as make 2,000 prompts.
        picture: file to write, of the kind it ends in.

    Raises:
        RollwiseError: naming the setting that cannot be met.
    """
    if not (1 <= prompts <= MOST_PROMPTS and 1 <= rollouts <= MOST_PER_PROMPT):
        raise RollwiseError(
            f"prompts {prompts}, rollouts {rollouts}: give 1 to {MOST_PROMPTS} prompts and 1 to {MOST_PER_PROMPT} rollouts"
        )
    for name, value, lowest in (("waves", waves, 1), ("n_min", n_min, 0), ("seed", seed, 0), ("visit", visit, 0)):
        if value < lowest:
            raise RollwiseError(f"{name}: {value}; give {lowest} or more")
    if n_min > max(2, rollouts):
        raise RollwiseError(f"n_min: {n_min} for {rollouts} rollouts a prompt; at most {rollouts}")
    if draws is not None and draws < 1:
        raise RollwiseError(f"draws: {draws}; give 1 or more, or none")
    pool, source = read_pool(rates, counts, prior, visit)
    opening = (pool.prior or FLAT) if belief == "pool" else parse_prior(belief)
    goal = get_objective(objective)
    for name in methods:
        rule_of(name)
    get_advantage(advantage)
    if picture is not None:
        check_picture(picture)
    steps = draws or max(20, -(-2000 // prompts))
    settings = {"waves": waves, "n_min": min(n_min, rollouts), "prior": opening}
    found = {name: look(rule_of(name), pool, prompts, rollouts, steps, seed, advantage, settings) for name in methods}
    goals = ["mean"] if goal.name in ("none", "mean") else ["mean", goal]
    result = {
        "source": source,
        "mean_rate": pool.mean,
        "prompts": prompts,
        "rollouts_per_prompt": rollouts,
        "budget": prompts * rollouts,
        "belief": list(opening),
        "advantage": advantage,
        "simulated_steps": steps,
        "methods": found,
        "verdicts": verdicts(found, uniform_shares(pool, rollouts)),
        "ceilings": [asdict(ceiling(pool, name, rollouts)) for name in goals],
        "objective": objective_curve(goal, opening, rollouts),
        "warnings": warnings_of(pool, rollouts),
    }
    if picture is not None:
        from rollwise.cli.plan_picture import draw

        result["picture"] = str(draw(result, pool, picture))
    return result


def rule_of(name: str) -> Allocator:
    """The allocator of a method's name; a utility stands for AdaRoll with it."""
    return get_allocator("adaroll", utility=name) if name in UTILITIES else get_allocator(name)


def look(
    rule: Allocator,
    pool: Pool,
    prompts: int,
    rollouts: int,
    steps: int,
    seed: int,
    advantage: str,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Shares, quantiles of n and w(p) of one method."""
    inside = pool.coarse(EDGES)
    if isinstance(rule, Uniform) and advantage != "grpo_batch":
        kept = inside.rates[(inside.rates > 0) & (inside.rates < 1)]
        return {
            **uniform_shares(pool, rollouts),
            "standard_error": dict.fromkeys(SHARES, 0.0),
            "n": {str(q): float(rollouts) for q in QUANTILES},
            "n_shares": {str(rollouts): 1.0},
            "weight": as_lists(exact_weight(rollouts, kept, advantage)),
        }
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(len(inside.rates), size=prompts, p=inside.shares) for _ in range(steps)]
    records = [play_coins(rule, inside.rates[at], rollouts, rng, advantage=advantage, **settings) for at in drawn]
    values = {name: np.array([record.metrics[name] for record in records]) for name in SHARES}
    sizes = np.concatenate([record.counts for record in records])
    # what a mean rate in place of a bin's rates costs uniform allocation, where it is known, is made good for all
    whole, binned = uniform_shares(pool, rollouts), uniform_shares(inside, rollouts)
    lost = {name: whole[name] - binned[name] for name in SHARES}
    curve = None
    if ((inside.rates > 0) & (inside.rates < 1) & (inside.shares >= LEAST)).any():
        sizing: dict[str, Any] = {
            "prompts": prompts,
            "per_prompt": rollouts,
            "draws": 0,  # the steps above count
            "played": list(zip(records, drawn, strict=True)),
            "fewest": min(steps, FEWEST),
            "together": max(1, prompts // 16),
            "least": LEAST,
        }
        curve = measured_weight(rule, inside, seed=seed, advantage=advantage, **sizing, **settings)
    return {
        **{name: float(np.clip(x.mean() + lost[name], 0, 1)) for name, x in values.items()},
        "standard_error": {name: float(x.std() / np.sqrt(len(x))) for name, x in values.items()},
        "n": {str(q): float(np.percentile(sizes, q)) for q in QUANTILES},
        "n_shares": {str(n): float((sizes == n).mean()) for n in np.unique(sizes)},
        "weight": as_lists(curve),
    }


def uniform_shares(pool: Pool, rollouts: int) -> dict[str, float]:
    """`SHARES` under uniform allocation, computed."""
    dead = pool.dead_share(rollouts)
    return dict(zip(SHARES, (dead, 1 - dead, pool.unsolved_share(rollouts)), strict=True))


def as_lists(curve: WeightCurve | None) -> dict[str, list[float]]:
    """A weight curve as JSON data."""
    if curve is None:
        return {"rates": [], "weight": [], "low": [], "high": []}
    return {name: getattr(curve, name).tolist() for name in ("rates", "weight", "low", "high")}


def objective_curve(goal: Any, opening: tuple[float, float], rollouts: int) -> dict[str, Any]:
    """The weight asked for and the weight beliefs apply after 0, 1 and 4 earlier groups."""
    rates = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9])
    earlier = [0, rollouts, 4 * rollouts]
    return {
        "name": goal.name,
        "rates": rates.tolist(),
        "asked": goal.weight(rates).tolist(),
        "applied": {str(n): expected_weight(goal, rates, opening, n).tolist() for n in earlier},
    }


def warnings_of(pool: Pool, rollouts: int) -> list[str]:
    """What the numbers say the user may not expect."""
    found = []
    if rollouts <= SMALL_GROUP:
        enough = next((n for n in (4, 8, 16, 32) if n > rollouts and pool.dead_share(n) < 0.5), 16)
        found.append(
            f"groups of {rollouts}: {pool.dead_share(rollouts):.0%} of them are expected to be dead (all outcomes "
            f"equal) under uniform allocation; groups of {enough}: {pool.dead_share(enough):.0%}"
        )
    hopeless = float(pool.shares[pool.rates < 0.01].sum())
    if hopeless > 0.3:
        found.append(
            f"{hopeless:.0%} of the prompts succeed less than once in 100 rollouts; consider leaving them out"
        )
    return found
