"""Prompts as coins: a population with success rates, and a step played on it.

Random numbers belong to (seed, step, prompt slot, k-th rollout of that slot), not to the order of play. So two methods
that give a prompt k rollouts see the same k outcomes, and their difference has less noise than either.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from rollwise.simulate.drift import Drift
from rollwise.simulate.imperfections import PERFECT, Imperfections
from rollwise.simulate.pools import Coins
from rollwise.step import Step
from rollwise.types import FloatArray, IntArray, Rollout, RollwiseError, StepRecord

_CHUNK = 64
_COINS, _VERDICTS, _DURATIONS, _ORDER, _POPULATION = range(5)


@dataclass(frozen=True, eq=False)
class Played:
    """A closed step on prompts with true rates (B,).

    `success` (n,) is the truth behind each rollout of the record, `tokens` what all of them took, lost ones included;
    `clock` the simulated time, in median durations of a rollout; `late` the rollouts that came back after the decision
    that followed their wave.
    """

    record: StepRecord
    rates: FloatArray
    success: np.ndarray
    tokens: float
    clock: float
    late: int


class Environment:
    """A population and its rates.

    Args:
        pool: what prompts are drawn from.
        seed: everything random follows from it; methods compared on one seed meet the same prompts and coins.
        population: P prompts that are visited in shuffled passes; 0 for new prompts in every step.
        drift: how the rates move; needs a population.
    """

    def __init__(self, pool: Coins, seed: int, population: int = 0, drift: Drift | None = None) -> None:
        """Raises RollwiseError where drift has no population to move."""
        if drift is not None and population < 1:
            raise RollwiseError(
                "population: rates that move need prompts that are met again; give 1 or more, such as 256"
            )
        self.pool, self.seed, self.drift = pool, seed, drift
        rates = pool.draw(population, generator(_POPULATION, seed))
        self.rates = rates if drift is None else drift.start(rates)
        """(P,) success rates now."""
        self._order: IntArray = np.zeros(0, dtype=np.int64)
        self._taken = 0
        self._passes = 0
        self._chosen: IntArray = np.zeros(0, dtype=np.int64)
        self._visited = 0
        self.ids = [str(place) for place in range(population)]
        """Ids of the population, in order."""

    def visit(self, places: IntArray) -> tuple[list[str], FloatArray]:
        """Ids and rates (B,) of prompts that a selector chose."""
        self._chosen = places
        self._visited += len(places)
        return [self.ids[place] for place in places], self.rates[places]

    def open(self, step: int, size: int) -> tuple[list[str], FloatArray]:
        """Ids and rates (B,) of the prompts of the next step.

        Raises:
            RollwiseError: more prompts than the population has.
        """
        if not len(self.rates):
            rng = generator(_POPULATION, self.seed, 1 + step)
            return [f"{step}.{k}" for k in range(size)], self.pool.draw(size, rng)
        if size > len(self.rates):
            raise RollwiseError(
                f"population: {len(self.rates)} prompts, but a step takes {size}; give at least {size}"
            )
        if self._taken + size > len(self._order):
            # what is left of a pass is skipped: a step never holds a prompt twice
            self._order = generator(_ORDER, self.seed, self._passes).permutation(len(self.rates))
            self._taken = 0
            self._passes += 1
        self._chosen = self._order[self._taken : self._taken + size]
        self._taken += size
        return [str(place) for place in self._chosen], self.rates[self._chosen]

    def learn(self, played: Played) -> None:
        """Move the rates after a step."""
        if self.drift is not None:
            visited = self._visited / len(self.rates)
            epoch = self._passes - 1 + self._taken / len(self._order) if len(self._order) else visited
            self.rates = self.drift.move(self.rates, self._chosen, played.record, played.success, epoch)


def play(
    step: Step,
    rates: FloatArray,
    key: tuple[int, int],
    imperfections: Imperfections = PERFECT,
    tokens: tuple[float, float] = (1.0, 1.0),
) -> Played:
    """Play an open step to its end on coins of chances `rates` (B,).

    Args:
        key: seed and step, which the outcomes follow from.
        imperfections: what goes wrong.
        tokens: length of a success and of a failure.
    """
    sources = _Sources(rates, key, imperfections)
    running: list[tuple[float, int, Rollout]] = []
    truth: dict[str, bool] = {}
    clock, started, late, spent = 0.0, 0.0, 0, 0.0
    while wave := step.next_wave():
        late += len(running)
        started = clock
        for rollout in wave.rollouts:
            slot = step.slot_of[rollout.group_id]
            success, verdict, duration = sources.next(slot)
            length = tokens[0] if success else tokens[1]
            truth[rollout.id] = success
            spent += length
            if np.isfinite(duration):
                # for rules that vote: wrong answers take turns among three, so that they need not agree
                answer = "right" if success else f"wrong-{len(truth) % 3}"
                # a coin is a policy of one logit, and sure of every token it says
                norm = abs(float(success) - float(rates[slot]))
                back = rollout.result(verdict, answer=answer, tokens=round(length), logprob=0.0, gradient_norm=norm)
                heapq.heappush(running, (clock + duration, len(truth), back))
        clock = _wait(step, running, clock, imperfections.patience)
    deadline = imperfections.deadline
    clock = _wait(step, running, clock, None if deadline is None else max(0.0, started + deadline - clock))
    record = step.close()
    success_rows = np.array([truth[row.id] for row in record.rollouts], dtype=bool)
    return Played(record, rates, success_rows, spent, clock, late)


def _wait(step: Step, running: list[tuple[float, int, Rollout]], clock: float, limit: float | None) -> float:
    """Observe what comes back within `limit` (None: everything) in order of arrival; returns the time it is then."""
    end = np.inf if limit is None else clock + limit
    last = clock
    while running and running[0][0] <= end:
        last, _, rollout = heapq.heappop(running)
        step.observe(rollout)
    # nobody waits on when everything is back
    return end if running else max(clock, last)


def generator(purpose: int, seed: int, step: int = 0, chunk: int = 0) -> np.random.Generator:
    """The generator for one purpose."""
    # always four numbers: a seed sequence takes a shorter list for the same list filled up with zeros
    return np.random.default_rng([purpose, seed, step, chunk])


class _Sources:
    """The k-th outcome of each slot, drawn in chunks as far as anybody asks."""

    def __init__(self, rates: FloatArray, key: tuple[int, int], imperfections: Imperfections) -> None:
        self._rates, self._key, self._imperfections = rates, key, imperfections
        self._asked = np.zeros(len(rates), dtype=np.int64)
        self._success: list[np.ndarray] = []
        self._verdict: list[FloatArray] = []
        self._duration: list[FloatArray] = []

    def next(self, slot: int) -> tuple[bool, float, float]:
        """Truth, verdict and duration of the slot's next rollout."""
        chunk, k = divmod(int(self._asked[slot]), _CHUNK)
        self._asked[slot] += 1
        if chunk == len(self._success):
            self._draw(chunk)
        return (
            bool(self._success[chunk][slot, k]),
            float(self._verdict[chunk][slot, k]),
            float(self._duration[chunk][slot, k]),
        )

    def _draw(self, chunk: int) -> None:
        shape = (len(self._rates), _CHUNK)
        success = self._generator(_COINS, chunk).random(shape) < self._rates[:, None]
        self._success.append(success)
        if self._imperfections.any:
            self._verdict.append(self._imperfections.verdicts(success, self._generator(_VERDICTS, chunk)))
            self._duration.append(self._imperfections.durations(shape, self._generator(_DURATIONS, chunk)))
        else:
            self._verdict.append(success.astype(np.float64))
            self._duration.append(np.ones(shape))

    def _generator(self, purpose: int, chunk: int) -> np.random.Generator:
        return generator(purpose, *self._key, chunk)
