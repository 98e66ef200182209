"""What goes wrong between a prompt and a verdict: wrong verdicts, unknown ones, lost and late rollouts."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rollwise.types import FloatArray, RollwiseError

SLOWDOWN = 10.0
"""How much longer a straggler takes."""

_CHANCES = ("false_positive", "false_negative", "unknown", "lost", "straggler")


@dataclass(frozen=True)
class Imperfections:
    """Switches; all off by default. Chances are per rollout, times are in median durations of a rollout.

    A verdict is wrong with chance `false_positive` (a failure passes) or `false_negative` (a success is refused); with
    chance `unknown` there is none. A `lost` rollout never comes back. Durations are lognormal with deviation `delay` of
    their logarithm (all alike at 0), and `straggler` is the share that takes `SLOWDOWN` times as long.

    A wave is waited for until everything is back, or for `patience`; then the next is decided with the rest still
    running. In the last wave everything is waited for, or until `deadline` after its start; what is missing is unknown.
    """

    false_positive: float = 0.0
    false_negative: float = 0.0
    unknown: float = 0.0
    lost: float = 0.0
    delay: float = 0.0
    straggler: float = 0.0
    patience: float | None = None
    deadline: float | None = None

    def __post_init__(self) -> None:
        for name in _CHANCES:
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise RollwiseError(f"{name}: {value} is no chance; give a number from 0 to 1, such as 0.05")
        for name in ("delay", "patience", "deadline"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise RollwiseError(f"{name}: {value} is no duration; give 0 or more, such as 1.5")

    @property
    def any(self) -> bool:
        """Whether any switch is on."""
        return any(getattr(self, field.name) != field.default for field in fields(self))

    def verdicts(self, success: np.ndarray, rng: np.random.Generator) -> FloatArray:
        """Verdicts of the shape of `success` (bool): 1, 0, or NaN where the verifier says nothing."""
        flip, silent = rng.random((2, *success.shape))
        wrong = flip < np.where(success, self.false_negative, self.false_positive)
        return np.where(silent < self.unknown, np.nan, (success ^ wrong).astype(np.float64))

    def durations(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Durations of that shape; infinite for the lost."""
        slow, gone = rng.random((2, *shape))
        times = np.exp(self.delay * rng.standard_normal(shape)) * np.where(slow < self.straggler, SLOWDOWN, 1.0)
        return np.where(gone < self.lost, np.inf, times)


PERFECT = Imperfections()
