"""Who is first of many when one changes at a time: binary trees over prompts, an update in log2(P) comparisons.

A tree is flat: node 1 is the root, node i has children 2i and 2i + 1, and leaf P' + i is prompt i, P' the power of two
from `leaf_count`. Kernels only.
"""

from __future__ import annotations

import numpy as np

from rollwise.solver.jit import compile_kernel

TIE = 1e-12
"""Numbers this close are equal."""


@compile_kernel
def leaf_count(size):  # type: ignore[no-untyped-def]
    """The power of two from `size` on."""
    leaves = 1
    while leaves < size:
        leaves *= 2
    return leaves


@compile_kernel
def precedes(key, paid, other, other_paid):  # type: ignore[no-untyped-def]
    """Whether a key is larger, place by place; of equal ones the one with fewest paid."""
    for place in range(key.size):
        if key[place] > other[place] + TIE:
            return True
        if key[place] < other[place] - TIE:
            return False
    return paid < other_paid


@compile_kernel
def seed_winners(keys, paid, room):  # type: ignore[no-untyped-def]
    """[2P'] the first of each node's prompts by `keys` (P, 3), then fewest `paid`, then lowest; -1 where none has room."""
    leaves = leaf_count(room.size)
    winners = np.full(2 * leaves, -1, dtype=np.int64)
    for i in range(room.size):
        if room[i] > 0:
            winners[leaves + i] = i
    for node in range(leaves - 1, 0, -1):
        winners[node] = _play(winners[2 * node], winners[2 * node + 1], keys, paid)
    return winners


@compile_kernel
def replay(winners, i, keys, paid, has_room):  # type: ignore[no-untyped-def]
    """Put the tree right after prompt i changed."""
    node = winners.size // 2 + i
    winners[node] = i if has_room else -1
    while node > 1:
        node //= 2
        winners[node] = _play(winners[2 * node], winners[2 * node + 1], keys, paid)


@compile_kernel
def _play(left, right, keys, paid):  # type: ignore[no-untyped-def]
    if left < 0 or right < 0:
        return max(left, right)
    return right if precedes(keys[right], paid[right], keys[left], paid[left]) else left


@compile_kernel
def seed_lowest(size):  # type: ignore[no-untyped-def]
    """Trees of what lifting a minimum takes, empty: floats [2P', 3] and counts [2P', 3], see `set_lowest`.

    Floats: the minimum of the node's prompts; the next value above it, once those on it have risen; the sum of what they
    gain. Counts: how many are on it, which of them rises first, and whether one of them cannot.
    """
    leaves = leaf_count(size)
    floats, counts = np.zeros((2 * leaves, 3)), np.zeros((2 * leaves, 3), dtype=np.int64)
    floats[:, :2] = np.inf
    counts[:, 1] = -1
    return floats, counts


@compile_kernel
def set_lowest(floats, counts, i, worth, next_worth, gain, has_room):  # type: ignore[no-untyped-def]
    """Set the leaf of prompt i: what it is worth now and with one more, and what one more gains."""
    leaf = floats.shape[0] // 2 + i
    floats[leaf, 0] = worth
    floats[leaf, 1] = next_worth if has_room else np.inf
    floats[leaf, 2] = gain if has_room else 0.0
    counts[leaf, 0], counts[leaf, 1], counts[leaf, 2] = (1, i, 0) if has_room else (0, -1, 1)


@compile_kernel
def settle_lowest(floats, counts, i, paid):  # type: ignore[no-untyped-def]
    """Put the tree right after the leaf of prompt i changed, or what was paid for it."""
    node = floats.shape[0] // 2 + i
    while node > 1:
        node //= 2
        low, next_low, gained = floats[node]
        on_it, first, stuck = counts[node]
        raise_lowest(floats, counts, node, paid)
        same = floats[node, 0] == low and floats[node, 1] == next_low and floats[node, 2] == gained
        if same and counts[node, 0] == on_it and counts[node, 1] == first != i and counts[node, 2] == stuck:
            return


@compile_kernel
def raise_lowest(floats, counts, node, paid):  # type: ignore[no-untyped-def]
    """Put one inner node right from its children."""
    left, right = 2 * node, 2 * node + 1
    least, most = floats[left, 0], floats[right, 0]
    if most < least - TIE or least < most - TIE:
        # One child alone has the minimum.
        child, above = (left, most) if least < most else (right, least)
        floats[node, 0] = floats[child, 0]
        floats[node, 1] = min(floats[child, 1], above)
        floats[node, 2] = floats[child, 2]
        for place in range(3):
            counts[node, place] = counts[child, place]
        return
    floats[node, 0] = min(least, most)
    floats[node, 1] = min(floats[left, 1], floats[right, 1])
    floats[node, 2] = floats[left, 2] + floats[right, 2]
    first, second = counts[left, 1], counts[right, 1]
    counts[node, 0] = counts[left, 0] + counts[right, 0]
    counts[node, 1] = second if first < 0 or (second >= 0 and paid[second] < paid[first]) else first
    counts[node, 2] = max(counts[left, 2], counts[right, 2])
