"""Ranking is a bijection onto each layer, checked against multisets listed by itertools."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb

import numpy as np
import pytest

from rollwise.solver.states import build_space, count_states, rank_state, unrank_state


def layer(space, total):
    """All states of a layer in falling order, listed without the code under test."""
    types = [
        tuple(sorted(c, reverse=True)) for c in combinations_with_replacement(range(space.type_n.size), space.prompts)
    ]
    return [c for c in types if sum(space.type_n[list(c)]) == total]


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize(("prompts", "budget", "cap"), [(1, 4, 4), (2, 5, 5), (3, 5, 5), (3, 6, 2), (4, 4, 3)])
def test_rank_is_a_bijection_onto_each_layer(prompts, budget, cap, folded):
    space = build_space(prompts, budget, cap, folded)
    for total in range(budget + 1):
        states = layer(space, total)
        ranks = [rank_state(space.counts, space.type_n, np.array(c, np.int32), total) for c in states]
        assert sorted(ranks) == list(range(space.offsets[total + 1] - space.offsets[total]))
        for state, rank in zip(states, ranks):
            found = np.empty(prompts, dtype=np.int32)
            unrank_state(space.counts, space.type_n, space.first, rank, total, found)
            assert tuple(found) == state
    assert space.size == count_states(prompts, budget, cap, folded)


def test_folding_maps_mirror_images_to_one_type():
    space = build_space(2, 6, 6, True)
    assert space.type_of[1, 4] == space.type_of[4, 1]
    assert (space.type_s <= space.type_f).all()
    assert space.succeed[space.type_of[2, 2]] == space.fail[space.type_of[2, 2]] == space.type_of[2, 3]


def test_caps_end_the_successors():
    space = build_space(3, 6, 2, False)
    full = space.type_n == 2
    assert (space.succeed[full] == -1).all() and (space.fail[~full] >= 0).all()


def test_one_prompt_has_one_state_per_pair():
    assert count_states(1, 10, 10, False) == comb(12, 2)


def test_counting_matches_the_published_table_and_stops_early():
    assert count_states(6, 48, 48, True) == 74_962_827
    assert count_states(5, 40, 40, False) == 95_257_855
    assert count_states(64, 512, 512, True, at_most=1e6) > 1e6
