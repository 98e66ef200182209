"""The dual algorithm of CERO (arXiv 2606.05606): prices that pace M prompts and one budget over K rounds.

    max sum_i U(q_i, sum_k N_ik)   s.t.  sum_i N_ik <= C,  N_ik <= N_max,  sum_ik N_ik <= B
    U(q, z) = 1 - exp(-4 lam q z / R),     q = E[p(1-p)] = ab / ((a+b)(a+b+1)),     R = B/M

A prompt is served while its price theta_i, what another unit is thought to be worth, exceeds the budget's price nu.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.types import FloatArray, IntArray, RollwiseError


class DualPacing:
    """State of the algorithm: beliefs (M, 2), prompt duals theta (M,) and budget dual nu in [0, 1], units spent.

    One round is `propose` (what to serve), then `learn` (what came back); a round that serves nothing learns nothing.
    A unit is `g` rollouts, so numbers here are units.

    Args:
        prompts: M.
        rounds: K.
        budget: B, units in all.
        capacity: C, units of a round.
        per_prompt: N_max, units of a prompt and round.
        curvature: lam of the utility.
        discount: rho, share of a prompt's evidence that survives a visit: a <- a0 + rho (a - a0) + s.
        seed: of the permutation that orders equal prices (the whole first pass over the data).

    Raises:
        RollwiseError: naming the number that is out of range.
    """

    def __init__(
        self,
        prompts: int,
        rounds: int,
        budget: int,
        capacity: int,
        per_prompt: int = 2,
        curvature: float = 1.0,
        discount: float = 1.0,
        seed: int = 0,
    ) -> None:
        numbers = {
            "prompts": prompts,
            "rounds": rounds,
            "budget": budget,
            "capacity": capacity,
            "per_prompt": per_prompt,
        }
        for name, value in numbers.items():
            if value < 1:
                raise RollwiseError(f"cero {name}: {value}; give 1 or more")
        if not (curvature > 0 and 0 <= discount <= 1):
            raise RollwiseError(f"cero: curvature {curvature}, discount {discount}; give 1 and 1, the published ones")
        self.rounds, self.budget, self.capacity, self.per_prompt = rounds, budget, capacity, per_prompt
        self.curvature, self.discount = curvature, discount
        self.beliefs: FloatArray = np.ones((prompts, 2))
        self.theta = 4.0 * prompt_values(self.beliefs)
        self.nu = 0.5
        self.round, self.spent = 0, 0
        self._order = np.random.default_rng(seed).permutation(prompts)
        self._virtual: IntArray = np.zeros(prompts, dtype=np.int64)

    @property
    def done(self) -> bool:
        """Whether the budget is spent or the rounds are over."""
        return self.round >= self.rounds or self.spent >= self.budget

    def propose(self) -> IntArray:
        """(M,) units to serve this round: N_max each in order of theta - nu > 0 until C, cut where the budget ends."""
        margins = (self.theta - self.nu)[self._order]
        ranked = self._order[np.argsort(-margins, kind="stable")][: np.count_nonzero(margins > 0)]
        self._virtual = self._serve(ranked, self.capacity)
        return self._serve(ranked, min(self.capacity, self.budget - self.spent))

    def learn(self, places: IntArray, successes: ArrayLike, failures: ArrayLike, units: int) -> None:
        """End the round: prompts at `places` (B,) answered with counts (B,), for `units` in all.

            theta_i <- clip(theta_i - (Nv_i - z*_i / K) / (N_max sqrt(K))),    nu <- clip(nu - (B/K - sum Nv) / (G sqrt(K)))

        for all prompts, with Nv the proposal before the budget's cut, z* the best response to theta, G = max(B/K, C - B/K).
        """
        if len(places):
            counts = np.stack(
                [np.asarray(successes, dtype=np.float64), np.asarray(failures, dtype=np.float64)], axis=1
            )
            self.beliefs[places] = 1.0 + self.discount * (self.beliefs[places] - 1.0) + counts
        self.spent += units
        self.round += 1
        pace = self.budget / self.rounds
        step = 1.0 / np.sqrt(self.rounds)
        wanted = self.responses() / self.rounds
        self.theta = np.clip(self.theta - step * (self._virtual - wanted) / self.per_prompt, 0.0, 1.0)
        widest = max(pace, self.capacity - pace)
        self.nu = float(np.clip(self.nu - step * (pace - self._virtual.sum()) / widest, 0.0, 1.0))

    def responses(self) -> FloatArray:
        """(M,) z*: units at which the utility's slope falls to the price `t = lam theta / R`, within [0, K N_max].

        z* = ln(c/t) / c with c = 4 lam q / R: the Fenchel conjugate's maximiser.
        """
        ratio = self.budget / len(self.theta)
        c = 4.0 * self.curvature * prompt_values(self.beliefs) / ratio
        t = self.curvature / ratio * self.theta
        most = self.rounds * self.per_prompt
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.clip(np.log(c / t) / c, 0.0, most)
        # theta = 4q up to rounding is a slope met at z = 0
        return np.where((c <= 0) | (t >= c * (1 - 1e-12)), 0.0, np.where(t <= c * np.exp(-c * most), most, inner))

    def state_dict(self) -> dict[str, Any]:
        """Numbers and arrays."""
        return {
            "beliefs": self.beliefs.copy(),
            "theta": self.theta.copy(),
            "nu": self.nu,
            "round": self.round,
            "spent": self.spent,
            "virtual": self._virtual.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; the settings stay this object's own.

        Raises:
            RollwiseError: a state of another number of prompts.
        """
        theta = np.asarray(state["theta"], dtype=np.float64)
        if theta.shape != self.theta.shape:
            raise RollwiseError(
                f"cero: the saved state is of {len(theta)} prompts and the data set has {len(self.theta)}"
            )
        self.theta = theta.copy()
        self.beliefs = np.asarray(state["beliefs"], dtype=np.float64).reshape(-1, 2).copy()
        self.nu, self.round, self.spent = float(state["nu"]), int(state["round"]), int(state["spent"])
        self._virtual = np.asarray(state["virtual"], dtype=np.int64).copy()

    def _serve(self, ranked: IntArray, units: int) -> IntArray:
        given = np.zeros(len(self.theta), dtype=np.int64)
        whole, rest = divmod(max(0, units), self.per_prompt)
        given[ranked[:whole]] = self.per_prompt
        if rest and len(ranked) > whole:
            given[ranked[whole]] = rest
        return given


def prompt_values(beliefs: FloatArray) -> FloatArray:
    """(M,) E[p(1-p)] under Beta beliefs (M, 2)."""
    a, b = beliefs[:, 0], beliefs[:, 1]
    total = a + b
    return a * b / (total * (total + 1))


def total_utility(values: FloatArray, units: ArrayLike, ratio: float, curvature: float = 1.0) -> float:
    """sum_i 1 - exp(-4 lam q_i z_i / R) for values q (M,) and cumulative units z (M,)."""
    return float(-np.expm1(-4.0 * curvature * values * np.asarray(units) / ratio).sum())
