"""Success rates of prompts never seen, from prompts that read alike: VIP's predictor (arXiv 2602.01601).

    f ~ GP(mean, s^2 [(1 - own) exp(-|x - x'|^2 / (2 h^2)) + own 1(same prompt)])
    logit(clip(rate, eps, 1 - eps)) = f + noise,     p = sigmoid(E[f | data])

x an embedding of the prompt, h the median distance between observed prompts, mean and s^2 those of the observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.beliefs.fit import check_counts
from rollwise.beliefs.prior import FLAT
from rollwise.beliefs.source import check_kind
from rollwise.types import FloatArray, RollwiseError

CONCENTRATION = (1.0, 64.0)
"""Bounds of a + b: a prediction never counts for more rollouts than that."""
PAIRS = 500
"""Observed prompts whose distances give the bandwidth."""


class GaussianProcessPrior:
    """Each step opens with beliefs predicted from all prompts observed before, their embeddings telling who is alike.

    An exact regression on the latest rate of each of the `limit` prompts observed last; the policy's drift is met by
    replacing a prompt's old rate. A belief's mean is the prediction, its weight follows from the prediction's variance by
    the delta method: a + b + 1 = 1 / (p (1-p) Var f). Beta(1,1) before two prompts were observed. Numpy only; a step costs
    a Cholesky factorisation, about a second at 2,000 prompts.

    Args:
        embeddings: vector (d,) of each prompt by its id, all of one length; `tasks.embedding` makes some.
        noise: variance of an observation in logits.
        eps: rates are clipped to [eps, 1 - eps].
        own: share of the spread between prompts that their embeddings do not explain; 0 as published, which claims to know
            prompts never seen far too well where texts say little (docs/methods/vip.md).
        limit: most prompts kept.

    Raises:
        RollwiseError: embeddings of unequal length, a number out of range; from `for_step`, a prompt without embedding.
    """

    name = "gaussian_process"
    SETTINGS = ("noise", "eps", "own", "limit")

    def __init__(
        self,
        embeddings: Mapping[str, ArrayLike],
        *,
        noise: float = 0.1,
        eps: float = 1e-2,
        own: float = 0.0,
        limit: int = 2000,
    ) -> None:
        if not noise > 0 or not 0 < eps < 0.5 or not 0 <= own <= 1 or limit < 2:
            raise RollwiseError(
                f"prior {self.name}: noise {noise}, eps {eps}, own {own}, limit {limit}; give noise above 0, eps below "
                "0.5, own from 0 to 1, and a limit of 2 or more"
            )
        self.embeddings = {str(key): np.asarray(vector, dtype=np.float64) for key, vector in embeddings.items()}
        if len({vector.shape for vector in self.embeddings.values()}) > 1:
            raise RollwiseError(
                f"prior {self.name}: embeddings differ in length; give one vector (d,) for each prompt"
            )
        self.noise = noise
        self.eps = eps
        self.own = own
        self.limit = limit
        self._rates: dict[str, float] = {}

    def for_step(self, prompt_ids: Sequence[str]) -> FloatArray:
        """(B, 2) beliefs (a, b) at the opening of a step; changes nothing."""
        wanted = self._points(prompt_ids)
        if len(self._rates) < 2:
            return np.tile(np.array(FLAT), (len(prompt_ids), 1))
        seen = self._points(list(self._rates))
        rates = np.clip(np.array(list(self._rates.values())), self.eps, 1 - self.eps)
        same = np.array(list(self._rates))[:, None] == np.array([str(key) for key in prompt_ids])
        mean, variance = regress(seen, np.log(rates / (1 - rates)), wanted, same, self.noise, self.own)
        p = 1 / (1 + np.exp(-mean))
        weight = np.clip(1 / np.maximum(p * (1 - p) * variance, 1e-12) - 1, *CONCENTRATION)
        return np.stack([p * weight, (1 - p) * weight], axis=1)

    def observe(self, prompt_ids: Sequence[str], successes: ArrayLike, failures: ArrayLike) -> None:
        """Counts (B,) of known outcomes of a closed step; a prompt without any keeps its rate.

        Raises:
            RollwiseError: counts that are no counts, or a prompt without embedding.
        """
        s, n = check_counts(successes, np.asarray(successes) + np.asarray(failures))
        self._points(prompt_ids)
        for prompt_id, won, known in zip(prompt_ids, s, n, strict=True):
            if known:
                self._rates.pop(str(prompt_id), None)
                self._rates[str(prompt_id)] = float(won / known)
        for old in list(self._rates)[: max(0, len(self._rates) - self.limit)]:
            del self._rates[old]

    def state_dict(self) -> dict[str, Any]:
        """The observed prompts, the latest last, and their rates; embeddings are settings, not state."""
        return {"kind": self.name, "prompt_ids": list(self._rates), "rates": np.array(list(self._rates.values()))}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over rates.

        Raises:
            RollwiseError: the state of another kind, or of other prompts.
        """
        check_kind(self.name, state)
        self._points(state["prompt_ids"])
        rates = np.asarray(state["rates"], dtype=np.float64).tolist()
        self._rates = dict(zip(state["prompt_ids"], rates, strict=True))

    def _points(self, prompt_ids: Sequence[str]) -> FloatArray:
        absent = [key for key in prompt_ids if str(key) not in self.embeddings]
        if absent and not self.embeddings:
            raise RollwiseError(
                f"prior: {self.name} predicts from embeddings of prompts, and there are none here; use carried (method "
                "vip_beta)"
            )
        if absent:
            raise RollwiseError(f"prior {self.name}: no embedding of prompt {absent[0]!r}; give one for every prompt")
        return np.array([self.embeddings[str(key)] for key in prompt_ids])


def regress(
    seen: FloatArray, values: FloatArray, wanted: FloatArray, same: np.ndarray, noise: float, own: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (m,) of f at points (m, d), given noisy values (k,) at points (k, d); `same` (k, m) prompts."""
    centre, spread = float(values.mean()), max(float(values.var()), 1e-3)
    few = squared_distances(seen[:PAIRS], seen[:PAIRS])
    apart = few[few > 0]
    width = float(np.median(apart)) if len(apart) else 1.0
    alike = np.exp(-squared_distances(seen, seen) / (2 * width))
    between = spread * ((1 - own) * alike + own * np.eye(len(seen)))
    across = spread * ((1 - own) * np.exp(-squared_distances(seen, wanted) / (2 * width)) + own * same)
    factor = np.linalg.cholesky(between + noise * np.eye(len(seen)))
    half = np.linalg.solve(factor, np.column_stack([values - centre, across]))
    mean = centre + half[:, 1:].T @ half[:, 0]
    return mean, np.maximum(spread - (half[:, 1:] ** 2).sum(axis=0), 0.0)


def squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """(k, m) squared distances between points (k, d) and (m, d)."""
    found = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * a @ b.T
    return np.where(found > 1e-9 * (1 + (a**2).sum(axis=1)[:, None]), found, 0.0)
