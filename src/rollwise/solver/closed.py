"""Optimal rules that need no table: minimum squared advantage and the maximum-reward utilities.

One at a time (equal to the exact optimum under every shared prior tried):

    min_squared_advantage    prompts not yet mixed first, fewest rollouts first; then smallest s*f/n, or n (normalised)
    sum_, min_max_reward     unsolved prompts first, fewest failures first; then every choice ties

With k rollouts of a prompt still running, the same aims one step ahead. c_k is the chance that a prompt is mixed (or
solved) once they are back:

    sum_max_reward                           largest c_{k+1} - c_k: the next rollout is the first success
    min_max_reward, min_squared_advantage    largest c_{k+1}/c_k: all prompts succeed together, a product; c_k = 0 goes
                                             first, by fewest failures, or fewest rollouts including running ones
    min_squared_advantage, none left to mix  smallest E[s*f/n] once they are back, or smallest n + k
"""

from __future__ import annotations

import numpy as np

from rollwise.solver.jit import compile_kernel
from rollwise.types import IntArray
from rollwise.utilities import Utility, max_reward, squared_advantage_normalised, squared_advantage_raw

_SUM_MAX, _MIN_MAX, _RAW, _NORMALISED = range(4)

_RULES = {
    ("sum", max_reward): _SUM_MAX,
    ("min", max_reward): _MIN_MAX,
    ("min", squared_advantage_raw): _RAW,
    ("min", squared_advantage_normalised): _NORMALISED,
}


def closed_rule(utility: Utility) -> int | None:
    """The rule to hand to `fill_closed`, or None where the utility needs a table."""
    return next((rule for (kind, term), rule in _RULES.items() if (kind, term) == (utility.kind, utility.term)), None)


def fill_closed(
    rule: int,
    prior: tuple[float, float],
    successes: IntArray,
    failures: IntArray,
    pending: IntArray,
    room: IntArray,
    paid: IntArray,
    share: int,
) -> IntArray:
    """(B,) rollouts to start now, `share` in all and at most `room` each; ties: fewest paid, then the lowest slot.

    `share` must fit into `room`; arrays are (B,).
    """
    columns = [np.ascontiguousarray(x, dtype=np.int64) for x in (successes, failures, pending, room, paid)]
    return _fill(rule, *prior, *columns, share)


@compile_kernel
def _fill(rule, a, b, s, f, pending, room, paid, share):  # type: ignore[no-untyped-def]
    given = np.zeros_like(s)
    keys = np.empty((s.size, 3))
    for i in range(s.size):
        _rate(rule, a, b, s[i], f[i], pending[i], keys[i])
    for _ in range(share):
        chosen = -1
        for i in range(s.size):
            if given[i] >= room[i]:
                continue
            if chosen < 0 or _precedes(keys[i], paid[i] + given[i], keys[chosen], paid[chosen] + given[chosen]):
                chosen = i
        given[chosen] += 1
        _rate(rule, a, b, s[chosen], f[chosen], pending[chosen] + given[chosen], keys[chosen])
    return given


@compile_kernel
def _precedes(key, paid, other, other_paid):  # type: ignore[no-untyped-def]
    for place in range(key.size):
        if key[place] > other[place] + 1e-12:
            return True
        if key[place] < other[place] - 1e-12:
            return False
    return paid < other_paid


@compile_kernel
def _rate(rule, a, b, s, f, k, key):  # type: ignore[no-untyped-def]
    """Write (stage, gain, order) of one more rollout, larger first; stage 2: sure to lack, 1: may lack, 0: has."""
    key[:] = 0.0
    if rule == 0 or rule == 1:
        if s > 0:
            return
        missed, hazard = 1.0, a / (a + b + f)
        for j in range(k):
            missed *= 1.0 - hazard
            hazard = a / (a + b + f + j + 1)
        if rule == 0:
            key[0], key[1] = 1.0, missed * hazard
        elif k == 0:
            key[0], key[2] = 2.0, hazard
        else:
            key[0], key[1] = 1.0, (1.0 - missed * (1.0 - hazard)) / (1.0 - missed)
        return
    if s > 0 and f > 0:
        n, mean = s + f, (a + s) / (a + b + s + f)
        key[1] = -(n + k)
        if rule == 2:
            square = k * mean * (1 - mean) * (a + b + n + k) / (a + b + n + 1) + (k * mean) ** 2
            # E[(s + S)(f + k - S)]/(n + k), S ~ BetaBinomial(k, a + s, b + f).
            key[1] = -(s * (f + k) + (f + k - s) * k * mean - square) / (n + k)
        return
    now, after = _stay_unmixed(a, b, s, f, k), _stay_unmixed(a, b, s, f, k + 1)
    if now == 1.0:
        key[0], key[2] = 2.0, -(s + f + k)
    else:
        key[0], key[1] = 1.0, (1.0 - after) / (1.0 - now)


@compile_kernel
def _stay_unmixed(a, b, s, f, k):  # type: ignore[no-untyped-def]
    """Chance that a prompt with outcomes of one kind only is still so after k more."""
    if k == 0 or (s + f == 0 and k == 1):
        return 1.0
    all_right, all_wrong = 1.0 if f == 0 else 0.0, 1.0 if s == 0 else 0.0
    for j in range(k):
        all_right *= (a + s + j) / (a + b + s + f + j)
        all_wrong *= (b + f + j) / (a + b + s + f + j)
    return all_right + all_wrong
