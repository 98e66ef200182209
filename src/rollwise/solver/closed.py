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

A wave for `min_squared_advantage` also looks at what the step will end with, or it would starve mixed prompts: no
prompt gets more than a plan that spends all that is left at once on  prod_i c_i * min_i E[h_i | mixed].
"""

from __future__ import annotations

import numpy as np

from rollwise.solver.jit import compile_kernel
from rollwise.solver.tournament import raise_lowest, replay, seed_lowest, seed_winners, set_lowest, settle_lowest
from rollwise.types import FloatArray, IntArray
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
    prior_a: FloatArray,
    prior_b: FloatArray,
    successes: IntArray,
    failures: IntArray,
    pending: IntArray,
    room: IntArray,
    paid: IntArray,
    share: int,
    left: int,
) -> IntArray:
    """(B,) rollouts to start now, `share` in all and at most `room` each; ties: fewest paid, then the lowest slot.

    Arrays are (B,), priors may differ; `left` is what the step has to spend, this share included, and must fit into `room`.
    """
    counts = [np.ascontiguousarray(x, dtype=np.int64) for x in (successes, failures, pending)]
    space, spent = (np.ascontiguousarray(x, dtype=np.int64) for x in (room, paid))
    prior = [np.ascontiguousarray(x, dtype=np.float64) for x in (prior_a, prior_b)]
    if rule in (_RAW, _NORMALISED) and share > 1:
        space = _plan(rule, *prior, *counts, space, spent, left)
    return _fill(rule, *prior, *counts, space, spent, share)


@compile_kernel
def _fill(rule, a, b, s, f, pending, room, paid, share):  # type: ignore[no-untyped-def]
    given, spent = np.zeros_like(s), paid.copy()
    keys, odds = np.empty((s.size, 3)), np.empty((s.size, 2))
    for i in range(s.size):
        _seed(a[i], b[i], s[i], f[i], pending[i], odds[i])
        _rate(rule, a[i], b[i], s[i], f[i], pending[i], odds[i], keys[i])
    winners = seed_winners(keys, spent, room)
    for _ in range(share):
        chosen = winners[1]
        k = pending[chosen] + given[chosen]
        given[chosen] += 1
        spent[chosen] += 1
        _extend(a[chosen], b[chosen], s[chosen], f[chosen], k, odds[chosen])
        _rate(rule, a[chosen], b[chosen], s[chosen], f[chosen], k + 1, odds[chosen], keys[chosen])
        replay(winners, chosen, keys, spent, given[chosen] < room[chosen])
    return given


@compile_kernel
def _plan(rule, a, b, s, f, pending, room, paid, left):  # type: ignore[no-untyped-def]
    """(B,) all that is left spent at once: whatever gains most of log(prod c * min E[h | mixed]) per rollout."""
    given, spent = np.zeros_like(s), paid.copy()
    keys, odds = np.empty((s.size, 3)), np.empty((s.size, 2))
    gain = np.empty(s.size)
    floats, counts = seed_lowest(s.size)
    for i in range(s.size):
        k = pending[i]
        _seed(a[i], b[i], s[i], f[i], k, odds[i])
        _rate(rule, a[i], b[i], s[i], f[i], k, odds[i], keys[i])
        gain[i] = _look_ahead(rule, a[i], b[i], s[i], f[i], k, odds[i], i, room[i] > 0, floats, counts)
    for node in range(floats.shape[0] // 2 - 1, 0, -1):
        raise_lowest(floats, counts, node, spent)
    winners = seed_winners(keys, spent, room)
    for done in range(left):
        chosen = winners[1]
        if keys[chosen, 0] < 2.0:
            # Lifting the minimum takes one rollout for each prompt on it, and room for every one of them.
            low, next_low, gained = floats[1]
            on_it, lifted, stuck = counts[1]
            if stuck == 0 and on_it <= left - done:
                each = (gained + np.log(max(next_low, low) / low)) / on_it
                if each > gain[chosen]:
                    chosen = lifted
        k = pending[chosen] + given[chosen]
        given[chosen] += 1
        spent[chosen] += 1
        more = given[chosen] < room[chosen]
        at = (a[chosen], b[chosen], s[chosen], f[chosen])
        _extend(*at, k, odds[chosen])
        _rate(rule, *at, k + 1, odds[chosen], keys[chosen])
        gain[chosen] = _look_ahead(rule, *at, k + 1, odds[chosen], chosen, more, floats, counts)
        replay(winners, chosen, keys, spent, more)
        settle_lowest(floats, counts, chosen, spent)
    return given


@compile_kernel
def _look_ahead(rule, a, b, s, f, k, odds, i, has_room, floats, counts):  # type: ignore[no-untyped-def]
    """Set prompt i's leaf to E[h | mixed] with k and k + 1 rollouts running; log of what one more does to its chance."""
    now, after = 1.0, 1.0
    if s == 0 or f == 0:
        now, after = 1.0 - _unmixed(s + f, k, odds), 1.0 - _unmixed_after(a, b, s, f, k, odds)
    worth, next_worth = float(s + f + k), float(s + f + k + 1)
    if rule == 2:
        if now > 0:
            worth = _expected_square(a, b, s, f, k) / now
        if after > 0:
            next_worth = _expected_square(a, b, s, f, k + 1) / after
    gain = np.log(after / now) if now > 0 else np.inf
    set_lowest(floats, counts, i, worth, next_worth, gain, has_room)
    return gain


@compile_kernel
def _rate(rule, a, b, s, f, k, odds, key):  # type: ignore[no-untyped-def]
    """Write (stage, gain, order) of one more rollout, larger first; stage 2: sure to lack, 1: may lack, 0: has."""
    key[:] = 0.0
    if rule == 0 or rule == 1:
        if s > 0:
            return
        missed, hazard = odds[1], a / (a + b + f + k)
        if rule == 0:
            key[0], key[1] = 1.0, missed * hazard
        elif k == 0:
            key[0], key[2] = 2.0, hazard
        else:
            key[0], key[1] = 1.0, (1.0 - missed * (1.0 - hazard)) / (1.0 - missed)
        return
    if s > 0 and f > 0:
        key[1] = -(s + f + k) if rule == 3 else -_expected_square(a, b, s, f, k)
        return
    now = _unmixed(s + f, k, odds)
    if now == 1.0:
        key[0], key[2] = 2.0, -(s + f + k)
    else:
        key[0], key[1] = 1.0, (1.0 - _unmixed_after(a, b, s, f, k, odds)) / (1.0 - now)


@compile_kernel
def _seed(a, b, s, f, k, odds):  # type: ignore[no-untyped-def]
    """Write the chances that a prompt has successes alone, and failures alone, once k more are back."""
    odds[0], odds[1] = 1.0 if f == 0 else 0.0, 1.0 if s == 0 else 0.0
    for j in range(k):
        _extend(a, b, s, f, j, odds)


@compile_kernel
def _extend(a, b, s, f, k, odds):  # type: ignore[no-untyped-def]
    """Take the chances from k to k + 1."""
    total = a + b + s + f + k
    odds[0] *= (a + s + k) / total
    odds[1] *= (b + f + k) / total


@compile_kernel
def _unmixed(n, k, odds):  # type: ignore[no-untyped-def]
    """Chance that a prompt with n outcomes of one kind only is still so after k more."""
    return 1.0 if k == 0 or (n == 0 and k == 1) else odds[0] + odds[1]


@compile_kernel
def _unmixed_after(a, b, s, f, k, odds):  # type: ignore[no-untyped-def]
    """`_unmixed` with one more running."""
    if s + f + k == 0:
        return 1.0
    return (odds[0] * (a + s + k) + odds[1] * (b + f + k)) / (a + b + s + f + k)


@compile_kernel
def _expected_square(a, b, s, f, k):  # type: ignore[no-untyped-def]
    """E[(s + S)(f + k - S)]/(n + k), S ~ BetaBinomial(k, a + s, b + f); 0 without rollouts."""
    n, mean = s + f, (a + s) / (a + b + s + f)
    second = k * mean * (1 - mean) * (a + b + n + k) / (a + b + n + 1) + (k * mean) ** 2
    return (s * (f + k) + (f + k - s) * k * mean - second) / max(n + k, 1)
