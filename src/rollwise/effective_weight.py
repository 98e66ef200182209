"""What an allocation rule really ascends: the curve w(p) by which it multiplies a prompt's own gradient.

Given the outcomes, a success's score has mean grad p / p and a failure's -grad p / (1-p), so a prompt contributes

    w(p) grad p,     w(p) = E[ sum over successes of A / p  -  sum over failures of A / (1-p) ]

(whole-sequence log-probabilities, on policy): E[sf/n]/(pq) with raw group-mean advantages, E[sqrt(sf)]/(pq) divided by the
population deviation, E[n] with a baseline fixed before the rollout. Adaptivity never turns a prompt's gradient; it
weighs prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.advantages import Advantage, Predictive, get_advantage
from rollwise.allocators.base import Allocator
from rollwise.beliefs.prior import FLAT
from rollwise.pool import Pool
from rollwise.step import Step
from rollwise.types import FloatArray, IntArray, Outcome, RollwiseError, StepRecord

Rule = Callable[[IntArray, IntArray], np.ndarray]
"""Whether a prompt with s successes and f failures (arrays of one shape) gets another rollout."""

Z95 = 1.959964


@dataclass(frozen=True, eq=False)
class WeightCurve:
    """w(p) at `rates` (R,); `low` and `high` (R,) are its 95 % interval, equal to it where it is exact.

    NaN at a rate that was drawn too rarely to say.
    """

    rates: FloatArray
    weight: FloatArray
    low: FloatArray
    high: FloatArray


def fixed(n: int) -> Rule:
    """The rule that gives every prompt n rollouts."""
    return lambda s, f: s + f < n


def until_success(successes: int = 1) -> Rule:
    """The rule that stops at that many successes."""
    return lambda s, f: s < successes


def exact_weight(
    rule: Rule | int, rates: ArrayLike, advantage: str | Advantage = "dr_grpo", cap: int = 64
) -> WeightCurve:
    """w(p) of a rule that looks at one prompt alone, by enumeration.

    Args:
        rule: whether to go on at (s, f), or the fixed number n of rollouts.
        rates: p (R,), each inside (0, 1).
        advantage: an estimator that depends on a group's rewards only, or `predictive`.
        cap: most rollouts of a prompt.

    Raises:
        RollwiseError: rates at the ends, or an estimator that looks beyond the group (`grpo_batch`).
    """
    p = np.asarray(rates, dtype=np.float64)
    if p.ndim != 1 or not ((p > 0) & (p < 1)).all():
        raise RollwiseError("rates: w(p) exists for rates between 0 and 1 only, such as 0.1,0.5")
    estimator = get_advantage(advantage)
    if getattr(estimator, "scale", None) == "batch":
        raise RollwiseError(f"advantage: {estimator.name} looks beyond the group; use measured_weight")
    goes_on = fixed(rule) if isinstance(rule, int) else rule
    cap = rule if isinstance(rule, int) else cap
    weight = np.zeros_like(p)
    alive = np.ones((len(p), 1))  # chance of being at s successes after n rollouts without having stopped
    for n in range(cap + 1):
        s = np.arange(n + 1)
        go = np.asarray(goes_on(s, n - s), dtype=bool) & (n < cap)
        for k in np.flatnonzero(~go & (alive > 0).any(axis=0)):
            weight += alive[:, k] * _contribution(estimator, int(k), int(n - k), p)
        alive = np.where(go, alive, 0.0)
        if not alive.any():
            break
        after = np.zeros((len(p), n + 2))
        after[:, 1:] += alive * p[:, None]
        after[:, :-1] += alive * (1 - p)[:, None]
        alive = after
    return WeightCurve(p, weight, weight.copy(), weight.copy())


def measured_weight(
    allocator: Allocator,
    pool: Pool,
    *,
    prompts: int,
    per_prompt: int,
    seed: int = 0,
    draws: int = 200,
    fewest: int = 50,
    together: int = 1,
    least: float = 0.0,
    played: Sequence[tuple[StepRecord, IntArray]] = (),
    advantage: str | Advantage = "dr_grpo",
    prior: tuple[float, float] = FLAT,
    **settings: Any,
) -> WeightCurve:
    """w(p) of any allocator at the rates of a small pool, by Monte Carlo through `rollwise.step.Step`.

    `draws` steps of prompts drawn from the pool are played with coins, and every prompt counts towards its own rate. Rates
    met fewer than `fewest` times get steps of their own for what is missing, with one prompt at that rate among others from
    the pool. The interval treats steps as independent, prompts within one as they come.

    Args:
        prompts, per_prompt: B and G; the budget is B x G.
        together: prompts at rates met too rarely that share a step of their own. More is quicker, and further from a step
            of the pool's: 8 of 32 lower w(0.01) of sum_variance from 15.6 to 13.9 under Beta(1,1).
        least: share of the pool below which a rate is left out of the curve.
        played: steps played before with the same rule and settings, each with its prompts' places (B,) in the pool; they
            count beside the `draws` that are played here.
        settings: further arguments of `Step`: `waves`, `n_min`, `n_max`, `weighting`, ...

    Raises:
        RollwiseError: a pool with rates of 0 or 1 only, or settings that `Step` refuses.
    """
    inside = (pool.rates > 0) & (pool.rates < 1) & (pool.shares >= least)
    rates = pool.rates[inside]
    if not len(rates):
        raise RollwiseError("pool: w(p) exists for rates between 0 and 1 only, and this pool has none")
    rng = np.random.default_rng(seed)
    place = np.full(len(pool.rates), -1)
    place[inside] = np.arange(len(rates))
    gains: list[FloatArray] = []
    scores: list[FloatArray] = []
    counts: list[IntArray] = []

    def play(drawn: IntArray, counted: IntArray | slice) -> None:
        coins = pool.rates[drawn]
        record = play_coins(allocator, coins, per_prompt, rng, advantage=advantage, prior=prior, **settings)
        count(record, coins, drawn, counted)

    def count(record: StepRecord, coins: FloatArray, drawn: IntArray, counted: IntArray | slice) -> None:
        where = place[drawn][counted]
        usable = where >= 0
        for sums, advantages in ((gains, record.advantages), (scores, np.ones(len(record.rollouts)))):
            values = contributions(record, coins, advantages)[counted][usable]
            sums.append(np.bincount(where[usable], weights=values, minlength=len(rates)).astype(np.float64))
        counts.append(np.bincount(where[usable], minlength=len(rates)))

    for record, drawn in played:
        count(record, pool.rates[drawn], drawn, slice(None))
    for _ in range(draws):
        play(rng.choice(len(pool.rates), size=prompts, p=pool.shares), slice(None))
    missing = np.maximum(fewest - np.sum(counts, axis=0), 0) if counts else np.full(len(rates), fewest)
    # one of each in turn, so that steps of their own are as alike as can be
    turns = np.concatenate([np.arange(count) for count in missing])
    wanted = np.repeat(np.flatnonzero(inside), missing)[np.argsort(turns, kind="stable")]
    for start in range(0, len(wanted), together):
        chosen = wanted[start : start + together]
        drawn = rng.choice(len(pool.rates), size=prompts, p=pool.shares)
        slots = rng.permutation(prompts)[: len(chosen)]
        drawn[slots] = chosen
        play(drawn, slots)
    gain, score, met = np.array(gains), np.array(scores), np.array(counts)
    seen = met.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # scores sum to 0 on average under any stopping rule, so what they explain of the noise is taken off
        plain = gain.sum(axis=0) / seen
        slope = ((gain - plain * met) * score).sum(axis=0) / (score**2).sum(axis=0)
        weight = plain - slope * score.sum(axis=0) / seen
        error = np.sqrt(((gain - slope * score - weight * met) ** 2).sum(axis=0)) / seen
    return WeightCurve(rates, weight, weight - Z95 * error, weight + Z95 * error)


def play_coins(
    allocator: Allocator, coins: FloatArray, per_prompt: int, rng: np.random.Generator, **settings: Any
) -> StepRecord:
    """One step of B prompts that succeed with chances `coins` (B,), at per_prompt x B rollouts; nothing is kept."""
    step = Step([str(i) for i in range(len(coins))], allocator, len(coins) * per_prompt, rng=rng, **settings)
    while wave := step.next_wave():
        step.observe(*(rollout.result(rng.random() < coins[int(rollout.prompt_id)]) for rollout in wave.rollouts))
    return step.close()


def contributions(record: StepRecord, coins: FloatArray, advantages: FloatArray) -> FloatArray:
    """(B,) sum over a prompt's rows of advantage (n,) times mean score, in units of its gradient; NaN at rates 0 and 1."""
    won = np.array([row.outcome is Outcome.SUCCESS for row in record.rollouts])
    p = coins[record.slots]
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(won, 1 / p, -1 / (1 - p))
        found = np.bincount(record.slots, weights=advantages * score, minlength=len(coins))
    return np.where((coins > 0) & (coins < 1), found, np.nan)


def _contribution(estimator: Advantage, s: int, f: int, p: FloatArray) -> FloatArray:
    """(R,) contribution of a prompt that ended at s successes and f failures."""
    if isinstance(estimator, Predictive):
        return np.full(len(p), float(s + f))  # E over the order of outcomes; exact by the optional stopping theorem
    rewards = np.repeat([1.0, 0.0], [s, f])
    found = estimator(rewards, ["prompt"] * (s + f), np.ones((s + f, 2)), np.arange(s + f))
    return found[:s].sum() / p - found[s:].sum() / (1 - p)
