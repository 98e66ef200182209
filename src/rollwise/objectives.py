"""What is ascended: the objective sum_i F(p_i) as a weight w_F(p) = F'(p) on each prompt's gradient.

Weights come from beliefs held at the opening of a step, so what is really applied at a true rate p is E[w_F(phat)] and
not w_F(p): see `expected_weight`. How precisely the gradient is estimated is the allocator's affair; the matching
utility for it is `objective_table`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.beliefs.prior import mean
from rollwise.beliefs.quadrature import beta_nodes, log_rising
from rollwise.imports import load_function
from rollwise.suggest import nearest
from rollwise.types import FloatArray, RollwiseError
from rollwise.utilities import Utility

OBJECTIVES = ("none", "mean", "log", "pass@k")
LOG_FLOOR = 0.05
"""`log` weighs prompts below this rate as if they were at it: F = ln p above, a straight line of slope 20 below."""

Curve = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Objective:
    """F through its derivative: `weight(p)` = F'(p) >= 0 for rates p of any shape.

    `none` leaves advantages as their estimator made them, with whatever weight curve that has; it weighs like `mean`.
    """

    name: str
    curve: Curve

    def weight(self, rates: ArrayLike) -> FloatArray:
        """w_F at rates [...], same shape.

        Raises:
            RollwiseError: a user's curve that gives another shape, a negative or a non-finite weight.
        """
        p = np.asarray(rates, dtype=np.float64)
        try:
            found = np.asarray(self.curve(p), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise RollwiseError(f"objective: {self.name} fails on an array of rates ({error}); vectorise it") from None
        if found.shape != p.shape:
            raise RollwiseError(f"objective: {self.name} gave shape {found.shape} for {p.shape} rates; vectorise it")
        if not (np.isfinite(found).all() and (found >= 0).all()):
            raise RollwiseError(f"objective: {self.name} gave a weight that is negative or not finite; clip it")
        return found


def get_objective(value: Any) -> Objective:
    """Read the setting `objective`.

    `none` (default; also None), `mean` (F = p), `log` (F = ln p, clipped at `LOG_FLOOR`), `pass@k` for whole k >= 1
    (F = 1 - (1-p)^k, w = k (1-p)^(k-1)), `package.module:function` or a function of an array of rates giving w.

    Raises:
        RollwiseError: anything else, or a curve that is negative or not finite somewhere on [0, 1].
    """
    if isinstance(value, Objective):
        return value
    if value is None or value in ("none", "mean"):
        return Objective(value or "none", np.ones_like)
    if value == "log":
        return Objective("log", lambda p: 1.0 / np.maximum(p, LOG_FLOOR))
    if isinstance(value, str):
        if match := re.fullmatch(r"pass@([1-9]\d*)", value):
            k = int(match[1])
            return Objective(value, lambda p: k * (1.0 - p) ** (k - 1))
        if value.startswith("pass@"):
            raise RollwiseError(f"objective: {value!r} needs a whole k of at least 1, such as pass@4")
        if ":" not in value:
            raise RollwiseError(f"objective: no {value!r}; {nearest(value, OBJECTIVES)}, or module:function")
        found = Objective(value, load_function(value, "objective"))
    elif callable(value):
        found = Objective(getattr(value, "__name__", "user"), value)
    else:
        raise RollwiseError(f"objective: {value!r} is none; {nearest(str(value), OBJECTIVES)}, or module:function")
    found.weight(np.linspace(0.0, 1.0, 101))
    return found


def objective_weights(objective: Any, beliefs: ArrayLike, *, normalise: bool = True) -> FloatArray:
    """(B,) weight of each prompt: w_F at its belief's mean a/(a+b), divided by the step's mean weight.

    Call it once, at the opening of the step, with beliefs (B, 2) held then: weight and normaliser stay frozen whatever the
    rollouts bring, which is what keeps the gradient's direction. `none` gives ones.

    Raises:
        RollwiseError: beliefs of another shape, or an objective that is none.
    """
    found = get_objective(objective)
    pairs = np.asarray(beliefs, dtype=np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise RollwiseError(f"objective: beliefs have shape {pairs.shape}; give (B, 2), a and b of each prompt")
    weights = found.weight(mean(pairs[:, 0], pairs[:, 1]))
    total = weights.sum()
    # every weight 0 (all solved under pass@k): nothing to ascend, nothing to divide by
    return weights * (len(weights) / total) if normalise and total > 0 else weights


def expected_weight(
    objective: Any, rates: ArrayLike, prior: tuple[float, float] = (1.0, 1.0), earlier: int = 0
) -> FloatArray:
    """E[w_F(phat)] at true rates p (R,): what weighing by beliefs applies, against w_F(p) that was asked for.

    phat = (a+s)/(a+b+earlier) with s ~ Binomial(earlier, p): the belief's mean after `earlier` draws. At p = .05 under
    Beta(1,1), `log` gives 14.1 after 32 draws instead of 20, and 4.9 on the average over the beliefs of a first group of 8.
    """
    p = np.atleast_1d(np.asarray(rates, dtype=np.float64))[:, None]
    a, b = prior
    s = np.arange(earlier + 1)
    ones = np.ones(earlier + 1)
    choose = log_rising(ones, earlier) - log_rising(ones, s) - log_rising(ones, earlier - s)
    # 0^0 = 1 in powers, so that p = 0 and 1 need no care
    chance = np.exp(choose) * p**s * (1 - p) ** (earlier - s)
    return chance @ get_objective(objective).weight((a + s) / (a + b + earlier))


def objective_table(
    a: ArrayLike, b: ArrayLike, weight: ArrayLike | Objective, n_max: int, n_min: int = 1
) -> FloatArray:
    """h(s, f) [..., n_max+1, n_max+1]: minus the variance a prompt leaves in the estimate of the objective's gradient.

        h = -E[w^2 p q | a+s, b+f] / n,      E[p q] = ab / ((a+b)(a+b+1)) at the end posterior

    (Neyman allocation under beliefs: one more rollout gains w^2 E[pq] / (n(n+1)) on average.) A sum-type utility for the
    solver: bigger is better. `weight` is the frozen weight w of each prompt, broadcast with a and b; or an `Objective`, for
    E[w(p)^2 p q] with the rate itself uncertain. Multiply w by sqrt(C) where score norms differ between prompts. With
    the group mean as baseline one rollout is lost: pass n_min=2, and n - 1 stands for n. Below n_min the estimate does not
    exist, and h = -w^2 (1 + n_min - n) pulls the prompt up to n_min first. Zero where s + f > n_max.

    Raises:
        RollwiseError: n_min is neither 1 nor 2, or n_max is below it.
    """
    if n_min not in (1, 2) or n_max < n_min:
        raise RollwiseError(f"n_min: {n_min} with n_max {n_max}; 1 (own baseline) or 2 (group mean), n_max no smaller")
    s, f = np.meshgrid(np.arange(n_max + 1), np.arange(n_max + 1), indexing="ij")
    n = s + f
    if isinstance(weight, Objective):
        first, second = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
        spread = np.stack(
            [_weighted_spread(weight, x, y, s, f) for x, y in zip(first.ravel(), second.ravel(), strict=True)]
        ).reshape(*first.shape, n_max + 1, n_max + 1)
        missing = 4.0 * spread[..., :1, :1]
    else:
        alpha, beta, w = (np.asarray(x, dtype=np.float64)[..., None, None] for x in (a, b, weight))
        end_a, end_b = alpha + s, beta + f
        total = end_a + end_b
        spread = w**2 * (end_a / total) * (end_b / (total + 1))
        missing = w**2 + np.zeros_like(spread[..., :1, :1])
    h = np.where(n >= n_min, -spread / np.maximum(n - n_min + 1, 1), -missing * (1 + n_min - n))
    return np.where(n <= n_max, h, 0.0)


def objective_utility(prior: tuple[float, float], weight: float | Objective, n_max: int, n_min: int = 1) -> Utility:
    """`objective_table` as a utility of kind "sum" for prompts that share a prior and a weight."""
    return Utility.from_table(objective_table(*prior, weight, n_max, n_min), "sum", name="objective_variance")


def weighs_twice(objective: Any, advantage: str) -> str | None:
    """A warning where objective and advantage both weigh prompts by difficulty, None where only one does.

    `grpo` divides by the group's deviation, which already weighs a prompt by about 1/sqrt(p(1-p)).
    """
    name = get_objective(objective).name
    if name == "none" or advantage != "grpo":
        return None
    return (
        f"objective: {name} on top of advantage grpo weighs twice (grpo already weighs by about 1/sqrt(p(1-p))); "
        "use dr_grpo, grpo_batch or predictive to ascend it as it stands"
    )


def _weighted_spread(objective: Objective, a: float, b: float, s: Any, f: Any) -> FloatArray:
    rates, shares = beta_nodes(float(a), float(b))
    value = objective.weight(rates) ** 2 * rates * (1 - rates)
    with np.errstate(divide="ignore"):
        log_posterior = np.log(shares) + s[..., None] * np.log(rates) + f[..., None] * np.log1p(-rates)
    posterior = np.exp(log_posterior - log_posterior.max(axis=-1, keepdims=True))
    return (posterior @ value) / posterior.sum(axis=-1)
