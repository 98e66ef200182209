"""The next wave of a whole step, from any state in the middle of it: how many rollouts each prompt gets now.

The price is set so that the play over the waves left is expected to spend what is left; at that price every prompt takes
its own best k (`waves`), and the last wave spends what remains exactly (`last`). So the size of a wave is an output.

Cost for B prompts: with m over the sizes a prompt may still reach, B * R * sum of m^2 / 2 multiply-adds at one price, about
3,400 R for sizes up to 64; the price itself is sought on at most `SAMPLE` prompts, so a decision grows as B * R.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollwise.solver.dual import Price
from rollwise.solver.last import HORIZON, fill_last
from rollwise.solver.prices import check_room, check_sum, price_range
from rollwise.solver.prompts import PromptStates, Terms, own_terms, parts
from rollwise.solver.waves import FirstWave, WaveProblem, price_waves, value_waves
from rollwise.types import FloatArray, IntArray

SAMPLE = 32
"""Prompts the price is sought on where more than these differ: every B/32-th in the order of counts and mean."""

MOST_WAVES = 16
"""Waves looked ahead; the gain of more is below 0.1 % of the sequential one (beyond 8 it is 0.4 %)."""

SLACK = 0.005
"""Share of the budget the sought price may miss; the waves that follow make up for it."""

_TRIES, _TOLERANCE = 10, 1e-5
"""Prices tried on a sample, and how near to the best bound (a share of it) is near enough."""

_SHORT = 24
"""Sizes tried first where a sample stands for the step."""

_NEGLIGIBLE = 1e-4
"""Worth no size above `_SHORT` adds to any prompt of the sample, as a share of the range of h, for them to be left out."""

_GUESS = 8.0
"""First price tried: the range of h over this many times the rollouts a prompt."""

_STRIDE, _ROUGH = 4, 10.0
"""Every so-manyth prompt of the sample takes part in the rough search, and how many times more it may miss."""

_NEAR = 1.25
"""Factor between the rough price and the first one tried beside it."""

_LEAST = 1e-7
"""Smallest price, of the highest there is: what nobody needs is kept for the last wave, not burnt in the first."""

_FINE = 6
"""Sizes up to here are all tried, then three for each doubling."""
_COARSE = 32
"""From here on one for each doubling: the largest cost most of the time, and what lies between is read off at the end."""


def plan_wave(
    utility: Terms,
    prompts: PromptStates,
    budget: int,
    waves: int,
    *,
    quantum: int = 1,
    committed: int = 0,
    paid: IntArray | None = None,
    tokens: float | None = None,
) -> IntArray:
    """(P,) rollouts to start now, with `waves` decisions left, this one included, and `budget` rollouts to spend.

    With the `committed` ones, their sum is a multiple of `quantum` or all of the budget; it is all of the budget in the
    last wave. Pure: equal states give equal waves; ties go to the smaller wave, fewest `paid`, then the lowest slot.

    Args:
        committed: rollouts that start with this wave whatever it is; already in `prompts.pending`, not in `budget`.
        paid: (P,) rollouts paid for, for ties; default: those in the counts.
        tokens: what all that is left may cost in expectation, in the unit of `PromptStates.cost_*`. It is then the
            budget, `budget` only the most rollouts there may be, and rollouts that gain nothing are saved.

    Raises:
        RollwiseError: the utility is no sum, or the caps leave no room for the budget.
    """
    check_sum(utility)
    if tokens is None:
        check_room(prompts.at_cost(1.0), budget)
        prompts = prompts.at_cost(1.0)
    counted = prompts.successes + prompts.failures + prompts.pending if paid is None else paid
    if waves > 1 and budget + committed > quantum:
        limits = _Limits(budget, float(budget) if tokens is None else tokens, quantum, committed)
        wave = _price_wave(utility, prompts, min(waves, MOST_WAVES), limits, counted)
        if wave is not None:
            return wave
    wave = fill_last(utility, prompts, budget, counted, tokens=tokens)
    excess = (int(wave.sum()) + committed) % quantum
    if tokens is not None and excess:
        # What does not fill a quantum is saved: the last of those with most in this wave.
        for _ in range(min(excess, int(wave.sum()))):
            wave[wave.size - 1 - np.argmax(wave[::-1])] -= 1
    return wave


def size_wave(
    utility: Terms, prompts: PromptStates, budget: int, waves: int, *, quantum: int = 1, committed: int = 0
) -> int:
    """Rollouts of the wave `plan_wave` gives, without saying whose: where prompts are sampled, the sample's own estimate.

    For rules that fill a wave in their own way and want to know how large it should be. Arguments as for `plan_wave`.
    """
    limits = _Limits(budget, float(budget), quantum, committed)
    prompts = prompts.at_cost(1.0)
    if waves <= 1 or budget + committed <= quantum:
        return budget
    if prompts.grouped()[0].size <= SAMPLE:
        return int(plan_wave(utility, prompts, budget, waves, quantum=quantum, committed=committed).sum())
    sizes, top = _reach(prompts, budget)
    waves = min(waves, MOST_WAVES)
    sample, terms = own_terms(utility, prompts.take(_strata(prompts)), top)
    sizes, lam = _price_sample(sample, prompts.size, terms, sizes, waves, limits.cost)
    given = sizes[value_waves(sample, terms, sizes, waves, lam, spend=False).best()]
    if not given.any() and not prompts.pending.any():
        return budget
    return min(budget, _whole(given.sum() * prompts.size / sample.size, limits))


@dataclass(frozen=True)
class _Limits:
    """Rollouts there may be, what they may cost, and what a wave must be a multiple of."""

    rollouts: int
    cost: float
    quantum: int
    committed: int


def wave_sizes(prompts: PromptStates, budget: int) -> IntArray:
    """[K] numbers of further rollouts considered for one prompt: the smallest all, then ever fewer for each doubling."""
    most = int(min(prompts.room.max(), budget, max(HORIZON, 4 * -(-budget // prompts.size))))
    sizes, step = list(range(min(most, _FINE) + 1)), 2
    while sizes[-1] < most:
        sizes.append(min(most, sizes[-1] + step if sizes[-1] < _COARSE else 2 * sizes[-1]))
        if sizes[-1] == 6 * step:
            step *= 2
    return np.array(sizes)


def _price_wave(utility: Terms, prompts: PromptStates, waves: int, limits: _Limits, paid: IntArray) -> IntArray | None:
    """(P,) each prompt's best k at the price of the budget, in whole quanta; None where all is to be spent now."""
    sizes, top = _reach(prompts, limits.rollouts)
    first, group, counts = prompts.grouped()
    groups = prompts.take(first)
    if groups.size <= SAMPLE:
        groups, terms = own_terms(utility, groups, top)
        steepest = price_range(terms, prompts)
        problem = WaveProblem(groups, terms, sizes, waves)
        price = price_waves(problem, counts, limits.cost, _LEAST * steepest, steepest)
        wave, more = problem.value(price.high), problem.value(price.low)
        given = _mix(wave, more, group, limits.cost, paid)
    else:
        sample, terms = own_terms(utility, prompts.take(_strata(prompts)), top)
        sizes, lam = _price_sample(sample, prompts.size, terms, sizes, waves, limits.cost)
        wave = _value_parts(utility, groups, top, sizes, waves, lam)
        given = sizes[wave.best()][group]
    if not given.any() and not prompts.pending.any():
        return None
    return _round(given, wave, group, prompts.room, limits)


def _reach(prompts: PromptStates, budget: int) -> tuple[IntArray, int]:
    """[K] sizes to be considered, and the most outcomes a prompt can end with by them."""
    sizes = wave_sizes(prompts, budget)
    seen = prompts.successes + prompts.failures + prompts.pending
    return sizes, int((seen + np.minimum(prompts.room, sizes[-1])).max())


def _value_parts(
    utility: Terms, prompts: PromptStates, top: int, sizes: IntArray, waves: int, lam: float
) -> FirstWave:
    """`value_waves` with tables of h made for a part of the prompts at a time."""
    waves_of = [
        value_waves(*own_terms(utility, prompts.take(part), top), sizes, waves, lam, spend=False)
        for part in parts(utility, prompts, top)
    ]
    return FirstWave(sizes, np.concatenate([x.worth for x in waves_of]), np.concatenate([x.spend for x in waves_of]))


def _whole(wanted: float, limits: _Limits) -> int:
    """Rollouts of a wave that, with the committed ones, is the nearest number of whole quanta."""
    least = -(-max(limits.committed, 1) // limits.quantum)
    quanta = max(least, round((wanted + limits.committed) / limits.quantum))
    return quanta * limits.quantum - limits.committed


def _mix(few: FirstWave, many: FirstWave, group: IntArray, budget: float, paid: IntArray) -> IntArray:
    """Between two neighbouring prices: as many prompts on the lower one as the budget is expected to carry."""
    rows = np.arange(few.worth.shape[0])
    at_few, at_many = few.best(), many.best()
    more = (many.spend[rows, at_many] - few.spend[rows, at_few])[group]
    free = budget - few.spend[rows, at_few][group].sum()
    order = np.lexsort((np.arange(group.size), paid))
    lower = np.zeros(group.size, dtype=bool)
    lower[order] = np.cumsum(more[order]) <= free + 0.5 * more[order]
    return np.where(lower, few.sizes[at_many][group], few.sizes[at_few][group])


def _strata(prompts: PromptStates) -> IntArray:
    """(SAMPLE,) prompts at even distances in the order of outcomes seen, then posterior mean."""
    seen = prompts.successes + prompts.failures + prompts.pending
    mean = (prompts.a + prompts.successes) / (prompts.a + prompts.b + prompts.successes + prompts.failures)
    order = np.lexsort((mean, seen))
    return order[((np.arange(SAMPLE) + 0.5) * prompts.size / SAMPLE).astype(np.int64)]


def _price_sample(
    sample: PromptStates, size: int, terms: FloatArray, sizes: IntArray, waves: int, budget: float
) -> tuple[IntArray, float]:
    """The price, sought on a sample of `size` prompts, and the sizes that matter at it.

    Few of the sample find it roughly, all of it then well. Large sizes cost most of the time and are seldom of use, so
    they come in only where they are.
    """
    steepest = price_range(terms, sample)

    def search(problem: WaveProblem, roughness: float, start: float, factor: float) -> Price:
        return price_waves(
            problem, np.full(problem.size, size / problem.size), budget, _LEAST * steepest, steepest,
            tolerance=roughness * _TOLERANCE, slack=roughness * SLACK * budget, tries=_TRIES, start=start, factor=factor,
        )  # fmt: skip

    guess = steepest / (_GUESS * max(1.0, budget / size))
    few = sample.take(np.arange(_STRIDE // 2, sample.size, _STRIDE))
    rough = search(WaveProblem(few, terms, sizes, waves), _ROUGH, guess, 4.0)
    # At the end of the range the few have no use for the budget, which says nothing of the others.
    lam = rough.price if rough.price > 2 * _LEAST * steepest else guess
    short = sizes[sizes <= _SHORT]
    whole = WaveProblem(sample, terms, sizes, waves)
    brief = whole if short.size == sizes.size else WaveProblem(sample, terms, short, waves)

    def suffices(lam: float) -> bool:
        gain = whole.value(lam, spend=False).worth.max(axis=1) - brief.value(lam, spend=False).worth.max(axis=1)
        return bool(gain.max() <= _NEGLIGIBLE * (terms.max() - terms.min()))

    for problem in dict.fromkeys((brief, whole)):  # once, where they are the same
        if problem is not whole and not suffices(lam):
            continue
        price = search(problem, 1.0, lam, _NEAR)
        # Where no price comes near the budget, spend jumps: the dearer side leaves the rest to the waves that follow.
        lam = price.price if abs(price.spend - budget) <= 2 * SLACK * budget else price.high
        if problem is not whole and suffices(lam):
            return short, lam
    return sizes, lam


def _round(given: IntArray, wave: FirstWave, group: IntArray, room: IntArray, limits: _Limits) -> IntArray | None:
    """Whole quanta: single rollouts are added or dropped where the worth, read between sizes, changes best."""
    target = _whole(given.sum(), limits)
    if target >= limits.rollouts:
        return None
    largest = wave.sizes.size - 1
    rows, slots = wave.worth[group], np.arange(group.size)
    while (lack := target - int(given.sum())) != 0:
        upper = np.clip(np.searchsorted(wave.sizes, given, side="right" if lack > 0 else "left"), 1, largest)
        gap = wave.sizes[upper] - wave.sizes[upper - 1]
        change = np.sign(lack) * (rows[slots, upper] - rows[slots, upper - 1]) / gap
        able = given < np.minimum(room, wave.sizes[-1]) if lack > 0 else given > 0
        if not able.any():
            return None
        order = np.argsort(np.where(able, -change, np.inf), kind="stable")[: min(abs(lack), int(able.sum()))]
        given[order] += np.sign(lack)
    return given
