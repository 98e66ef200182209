"""Price decomposition: each prompt by itself, coupled to the others only through the price of a rollout.

    W(s, f) = max( h(s, f),  -lam c + mu W(s+1, f) + (1-mu) W(s, f+1) ),     mu = (a + s)/(a + b + s + f)

    bound    min over lam of  sum_i W_i + lam N        no policy within the caps is worth more (convex in lam)
    index    the largest lam at which rolling again is still optimal (a Gittins index); serve the largest first

For a utility that is a sum of h(s, f) over prompts; c is a rollout's expected cost, 1 where N counts rollouts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollwise.solver.dual import find_price
from rollwise.solver.jit import compile_kernel
from rollwise.solver.prompts import PromptStates, Terms, terms_by_total
from rollwise.types import FloatArray, IntArray, RollwiseError


@dataclass(frozen=True)
class Bound:
    """An upper bound on the expected utility of every policy that keeps the caps.

    It binds policies without caps too where `cap`, the most outcomes a prompt can end with, is N or more. `price` is
    the lam it was found at, `spend` the expected spend there, `floor` below what any other lam could give.
    """

    value: float
    price: float
    spend: float
    cap: int
    floor: float


def price_bound(utility: Terms, prompts: PromptStates, budget: float, *, at_most: bool = False) -> Bound:
    """Upper bound on E[sum_i h_i] from these states on, with `budget` left (in the unit of the costs).

    Args:
        at_most: the budget need not be spent whole (lam >= 0); otherwise lam takes either sign.

    Raises:
        RollwiseError: the utility is not a sum, or the caps leave no room for a budget in rollouts.
    """
    check_sum(utility)
    check_room(prompts, budget, at_most)
    terms = terms_by_total(utility, prompts.top)
    first, _, counts = prompts.grouped()
    groups = prompts.take(first)

    def evaluate(lam: float) -> tuple[float, float]:
        worth, spend = np.empty(groups.size), np.empty(groups.size)
        _play_all(*_columns(groups), terms, lam, worth, spend)
        return float(counts @ worth), float(counts @ spend)

    steepest = price_range(terms, prompts)
    found = find_price(evaluate, float(budget), 0.0 if at_most else -steepest, steepest)
    return Bound(found.value, found.price, found.spend, prompts.top, found.floor)


def indices(utility: Terms, prompts: PromptStates) -> FloatArray:
    """(P,) index of each prompt: the price per unit of cost up to which one more rollout pays; -inf without room.

    Rollouts still running count as expected outcomes that come back before anything else is decided.
    """
    check_sum(utility)
    terms = terms_by_total(utility, prompts.top)
    first, group, _ = prompts.grouped()
    found = np.empty(first.size)
    _index_all(*_columns(prompts.take(first)), terms, found)
    return found[group]


def index_table(utility: Terms, prior: tuple[float, float], n_max: int) -> FloatArray:
    """[n_max+1, n_max+1] index over (s, f) of a prompt capped at n_max rollouts; -inf at and beyond the cap."""
    s, f = np.nonzero(np.add.outer(np.arange(n_max + 1), np.arange(n_max + 1)) < n_max)
    table = np.full((n_max + 1, n_max + 1), -np.inf)
    table[s, f] = indices(utility, PromptStates.of(*prior, n_max - s - f, successes=s, failures=f))
    return table


def check_sum(utility: Terms) -> None:
    """Raise RollwiseError unless the utility adds up over prompts."""
    if utility.kind != "sum":
        raise RollwiseError(
            f"utility {utility.name!r} is a minimum over prompts, which prices cannot separate: "
            "use its stand-in (rollwise.solver.minimum), or a sum such as sum_variance"
        )


def check_room(prompts: PromptStates, budget: float, at_most: bool = False) -> None:
    """Raise RollwiseError where a budget that must be spent whole exceeds what the caps allow."""
    if budget < 0:
        raise RollwiseError(f"budget {budget} is negative: give 0 or more")
    most = float((prompts.room * np.maximum(prompts.cost_success, prompts.cost_failure)).sum())
    if budget > most and not at_most:
        raise RollwiseError(
            f"max_per_prompt leaves room for {most:g} of budget {budget:g}: raise it to at least "
            f"{int(np.ceil(budget / max(prompts.size, 1)))}"
        )


def price_range(terms: FloatArray, prompts: PromptStates) -> float:
    """A price so high that nobody rolls, and whose negative makes everybody roll up to the cap."""
    cheapest = float(min(prompts.cost_success.min(), prompts.cost_failure.min()))
    return 1.001 * float(terms.max() - terms.min()) / cheapest + 1e-9


def _columns(prompts: PromptStates) -> tuple[FloatArray | IntArray, ...]:
    return (
        prompts.a + prompts.successes,
        prompts.b + prompts.failures,
        prompts.successes,
        prompts.failures,
        prompts.pending,
        prompts.room,
        prompts.cost_success,
        prompts.cost_failure,
        prompts.table,
    )


@compile_kernel
def _play_all(alpha, beta, s, f, pending, room, dear, cheap, table, terms, lam, worth, spend):  # type: ignore[no-untyped-def]
    top = 2 + (pending + room).max()
    value, paid = np.empty(top), np.empty(top)
    for i in range(alpha.size):
        depth = pending[i] + room[i]
        _play(alpha[i], beta[i], s[i], f[i], pending[i], depth, dear[i], cheap[i], terms[table[i]], lam, value, paid)
        worth[i], spend[i] = value[0], paid[0]


@compile_kernel
def _play(alpha, beta, s, f, pending, depth, dear, cheap, terms, lam, value, paid):  # type: ignore[no-untyped-def]
    """Write W and the expected spend into value[0], paid[0]; the first `pending` of `depth` outcomes are free."""
    n = s + f
    for j in range(depth + 1):
        value[j] = terms[n + depth, s + j]
        paid[j] = 0.0
    for i in range(depth - 1, -1, -1):
        part = 1.0 / (alpha + beta + i)
        if i < pending:
            for j in range(i + 1):
                mu = (alpha + j) * part
                value[j] += mu * (value[j + 1] - value[j])
                paid[j] += mu * (paid[j + 1] - paid[j])
            continue
        for j in range(i + 1):
            mu = (alpha + j) * part
            cost = cheap + mu * (dear - cheap)
            go = value[j] + mu * (value[j + 1] - value[j]) - lam * cost
            stop = terms[n + i, s + j]
            paid[j] = paid[j] + mu * (paid[j + 1] - paid[j]) + cost if go > stop else 0.0
            value[j] = max(go, stop)


@compile_kernel
def _index_all(alpha, beta, s, f, pending, room, dear, cheap, table, terms, found):  # type: ignore[no-untyped-def]
    top = 2 + (pending + room).max()
    value, paid = np.empty(top), np.empty(top)
    for i in range(alpha.size):
        found[i] = -np.inf
        if room[i] > 0:
            found[i] = _index(
                alpha[i], beta[i], s[i], f[i], pending[i], room[i], dear[i], cheap[i], terms[table[i]], value, paid
            )


@compile_kernel
def _index(alpha, beta, s, f, pending, room, dear, cheap, terms, value, paid):  # type: ignore[no-untyped-def]
    """Root of (worth of rolling once at least) - (worth of stopping), by Newton: convex and falling in lam.

    With `pending` running, the roll is decided before they are back and stopping means to take what they bring.
    """
    depth = pending + room
    for j in range(pending + 1):
        value[j] = terms[s + f + pending, s + j]
    for i in range(pending - 1, -1, -1):
        for j in range(i + 1):
            value[j] += (alpha + j) / (alpha + beta + i) * (value[j + 1] - value[j])
    stop = value[0]
    mu = alpha / (alpha + beta)
    cost = cheap + mu * (dear - cheap)
    lam = 0.0
    for step in range(100):
        _play(alpha, beta, s, f, pending + 1, depth, dear, cheap, terms, lam, value, paid)
        ahead = (value[0] - lam * cost - stop) / (paid[0] + cost)
        lam += ahead
        # From the left the steps only ever lead right; the first may jump either way.
        if abs(ahead) <= 1e-15 * max(1.0, abs(lam)) or (step > 0 and ahead <= 0.0):
            break
    return lam
