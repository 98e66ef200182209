"""Trees that name the first of many, and the lowest, agree with a plain scan after every change."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rollwise.solver.tournament import precedes, replay, seed_lowest, seed_winners, set_lowest, settle_lowest

changes = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=30)


@given(size=st.integers(1, 9), changed=changes)
def test_the_winner_is_the_first_of_a_plain_scan(size: int, changed: list[tuple[int, int, int, bool]]) -> None:
    keys, paid, room = np.zeros((size, 3)), np.zeros(size, dtype=np.int64), np.ones(size, dtype=np.int64)
    winners = seed_winners(keys, paid, room)
    for place, key, more, has_room in changed:
        i = place % size
        keys[i, key % 3], paid[i], room[i] = key / 2, paid[i] + more, has_room
        replay(winners, i, keys, paid, has_room)
        best = -1
        for j in np.flatnonzero(room):
            if best < 0 or precedes(keys[j], paid[j], keys[best], paid[best]):
                best = j
        assert winners[1] == best


@given(size=st.integers(1, 9), changed=changes)
def test_the_lowest_are_those_of_a_plain_scan(size: int, changed: list[tuple[int, int, int, bool]]) -> None:
    now, after = np.full(size, 9.0), np.full(size, 10.0)
    gain, paid, room = np.zeros(size), np.zeros(size, dtype=np.int64), np.ones(size, dtype=bool)
    floats, counts = seed_lowest(size)
    for place, value, more, has_room in [(i, 3, 0, True) for i in range(size)] + changed:
        i = place % size
        now[i], after[i], gain[i], paid[i], room[i] = value, value + 0.5 + more, value + more, paid[i] + more, has_room
        set_lowest(floats, counts, i, now[i], after[i], gain[i], has_room)
        settle_lowest(floats, counts, i, paid)
    on_it = now == now.min()
    risers = np.flatnonzero(on_it & room)
    assert floats[1, 0] == now.min()
    assert floats[1, 1] == min([*now[~on_it], *after[risers], np.inf])
    assert floats[1, 2] == gain[risers].sum()
    assert counts[1, 0] == risers.size
    assert counts[1, 1] == (risers[np.argmin(paid[risers])] if risers.size else -1)
    assert bool(counts[1, 2]) == bool((on_it & ~room).any())
