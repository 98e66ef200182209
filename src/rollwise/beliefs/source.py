"""Where a step's prior comes from: fixed numbers, the population's recent counts, each prompt's own past, or its text.

A setting is one word: `prior="1,1"`, `"empirical"`, `"carried"` or `"gaussian_process"`; `prior_source` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from rollwise.beliefs.fit import check_counts, fit_prior
from rollwise.beliefs.prior import FLAT, parse_prior
from rollwise.beliefs.store import BeliefStore
from rollwise.suggest import nearest
from rollwise.types import FloatArray, IntArray, RollwiseError

NAMES = ("carried", "empirical", "gaussian_process")
DISCOUNT = 0.85
"""About the best one-step-ahead predictor on a GRPO log of 500 steps (docs/beliefs.md); faster learning wants less."""
WINDOW = 1024
FEWEST = 16
"""Groups before a population prior is fitted at all; Beta(1,1) until then."""


@runtime_checkable
class PriorSource(Protocol):
    """Gives each step its opening beliefs and learns from what came back. Deterministic: equal on all processes that
    observe the same counts."""

    name: str

    def for_step(self, prompt_ids: Sequence[str]) -> FloatArray:
        """(B, 2) beliefs (a, b) at the opening of a step; changes nothing."""
        ...

    def observe(self, prompt_ids: Sequence[str], successes: ArrayLike, failures: ArrayLike) -> None:
        """Counts (B,) of known outcomes of a closed step."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Numbers and arrays."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        ...


class FixedPrior:
    """The same Beta(a, b) for every prompt and step."""

    name = "fixed"

    def __init__(self, prior: tuple[float, float] = FLAT) -> None:
        self.prior = parse_prior(prior)

    def for_step(self, prompt_ids: Sequence[str]) -> FloatArray:
        """(B, 2), all rows alike."""
        return np.tile(np.array(self.prior), (len(prompt_ids), 1))

    def observe(self, prompt_ids: Sequence[str], successes: ArrayLike, failures: ArrayLike) -> None:
        """Learns nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {"kind": self.name}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to take over; refuses the state of another kind."""
        check_kind(self.name, state)


class EmpiricalPrior:
    """One Beta for all prompts, fitted to the counts of the last `window` groups (empirical Bayes).

    Refitted after every step and rounded to two digits, so that tables solved for a prior stay of use from step to step;
    Beta(1,1) before `FEWEST` groups were seen.

    Raises:
        RollwiseError: a window below 1.
    """

    name = "empirical"

    def __init__(self, window: int = WINDOW) -> None:
        if window < 1:
            raise RollwiseError(f"prior_window: {window} groups; give 1 or more, such as {WINDOW}")
        self.window = window
        self._groups: IntArray = np.zeros((0, 2), dtype=np.int64)
        self.prior: tuple[float, float] = FLAT

    def for_step(self, prompt_ids: Sequence[str]) -> FloatArray:
        """(B, 2), all rows alike."""
        return np.tile(np.array(self.prior), (len(prompt_ids), 1))

    def observe(self, prompt_ids: Sequence[str], successes: ArrayLike, failures: ArrayLike) -> None:
        """Keep the counts (B,) of groups with a known outcome and fit again.

        Raises:
            RollwiseError: counts that are no counts.
        """
        s, n = check_counts(successes, np.asarray(successes) + np.asarray(failures))
        seen = n > 0
        self._groups = np.concatenate([self._groups, np.stack([s[seen], n[seen]], axis=1)])[-self.window :]
        self._fit()

    def state_dict(self) -> dict[str, Any]:
        """The groups in the window."""
        return {"kind": self.name, "window": self.window, "groups": self._groups.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the groups; the window stays this object's own.

        Raises:
            RollwiseError: the state of another kind, or counts that are no counts.
        """
        check_kind(self.name, state)
        groups = np.asarray(state["groups"], dtype=np.int64).reshape(-1, 2)
        check_counts(groups[:, 0], groups[:, 1])
        self._groups = groups[-self.window :].copy()
        self._fit()

    def _fit(self) -> None:
        if len(self._groups) >= min(FEWEST, self.window):
            a, b = fit_prior(self._groups[:, 0], self._groups[:, 1])
            self.prior = float(f"{a:.2g}"), float(f"{b:.2g}")
        else:
            self.prior = FLAT


class CarriedPrior:
    """Each prompt opens with its own discounted posterior; prompts never seen with the population's prior.

    Args:
        base: Beta of prompts never seen; None to fit it to recent groups (`EmpiricalPrior`), which moves the beliefs of
            all prompts with it.
        discount: share of a prompt's evidence that survives a visit (`fit_discount` finds it from a log).
        limit: most prompts kept.
        window: groups the population's prior is fitted to.

    Raises:
        RollwiseError: naming the setting that is out of range.
    """

    name = "carried"

    def __init__(
        self,
        base: tuple[float, float] | None = None,
        discount: float = DISCOUNT,
        limit: int | None = None,
        window: int = WINDOW,
    ) -> None:
        self.population = EmpiricalPrior(window) if base is None else None
        self.store = BeliefStore(FLAT if base is None else base, discount, limit)

    def for_step(self, prompt_ids: Sequence[str]) -> FloatArray:
        """(B, 2), one belief per prompt."""
        return self.store.prior(prompt_ids)

    def observe(self, prompt_ids: Sequence[str], successes: ArrayLike, failures: ArrayLike) -> None:
        """Counts (B,) of known outcomes: discount, add, and fit the population's prior again.

        Raises:
            RollwiseError: counts that are no counts.
        """
        self.store.update(prompt_ids, successes, failures)
        if self.population is not None:
            self.population.observe(prompt_ids, successes, failures)
            self.store.base = self.population.prior

    def state_dict(self) -> dict[str, Any]:
        """The store's state, and the population's where it is fitted."""
        state: dict[str, Any] = {"kind": self.name, "store": self.store.state_dict()}
        if self.population is not None:
            state["population"] = self.population.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over beliefs and groups; discount and limit stay this object's own.

        Raises:
            RollwiseError: the state of another kind, or a damaged one.
        """
        check_kind(self.name, state)
        base, discount, limit = self.store.base, self.store.discount, self.store.limit
        self.store.load_state_dict(state["store"])
        self.store.discount, self.store.limit = discount, limit
        if self.population is None:
            self.store.base = base
        elif "population" in state:
            self.population.load_state_dict(state["population"])
            self.store.base = self.population.prior


def prior_source(
    value: Any,
    *,
    discount: float = DISCOUNT,
    window: int = WINDOW,
    limit: int | None = None,
    base: tuple[float, float] | None = None,
    embeddings: Mapping[str, ArrayLike] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> PriorSource:
    """Read the setting `prior`: "a,b" or a pair (fixed), "empirical", "carried", "gaussian_process", or a source as it is.

    `embeddings` (vectors (d,) by prompt id) and `settings` (of `GaussianProcessPrior`, and `embedding`, the address of what
    made them, which is not read here) are for the last.

    Raises:
        RollwiseError: anything else, or an option out of range.
    """
    if settings and value != "gaussian_process":
        raise RollwiseError(
            f"prior_settings: are for prior gaussian_process, and this run's is {value}; leave them out"
        )
    if not isinstance(value, (str, tuple, list)) and value is not None:
        if isinstance(value, PriorSource):
            return value
        raise RollwiseError(f"prior: {value!r} is not a prior; give 1,1, empirical or carried")
    if value == "empirical":
        return EmpiricalPrior(window)
    if value == "carried":
        return CarriedPrior(base, discount, limit, window)
    if value == "gaussian_process":
        from rollwise.beliefs.gaussian_process import GaussianProcessPrior

        check_settings(settings or {}, GaussianProcessPrior.SETTINGS)
        own = {key: number for key, number in (settings or {}).items() if key != "embedding"}
        return GaussianProcessPrior(embeddings or {}, **own)
    if isinstance(value, str) and value[:1].isalpha():
        raise RollwiseError(f"prior: no {value!r}; {nearest(value, NAMES)}, or two positive numbers such as 1,1")
    return FixedPrior(parse_prior(value))


def check_settings(settings: Mapping[str, Any], numbers: Sequence[str]) -> None:
    """Raise `RollwiseError` for a setting of `gaussian_process` that it has not, or that is of another type."""
    for key, value in settings.items():
        place = f"prior_settings.{key}"
        if key == "embedding":
            if value is not None and (not isinstance(value, str) or ":" not in value):
                raise RollwiseError(
                    f"{place}: {value!r} is no address; give module:function of what makes vectors (n, d) of n texts"
                )
        elif key not in numbers:
            raise RollwiseError(
                f"{place}: gaussian_process has no such setting; {nearest(str(key), (*numbers, 'embedding'))}"
            )
        elif (
            isinstance(value, bool)
            or not isinstance(value, Integral if key == "limit" else Real)
            or not np.isfinite(float(value))
        ):
            words = "a whole number, such as 2000" if key == "limit" else "a number, such as 0.1"
            raise RollwiseError(f"{place}: {value!r} does not fit; give {words}")


def check_kind(name: str, state: dict[str, Any]) -> None:
    """Raise `RollwiseError` where a state was saved by another kind of prior."""
    if state.get("kind") != name:
        raise RollwiseError(f"prior: saved state is of kind {state.get('kind')!r}, this run's prior is {name!r}")
