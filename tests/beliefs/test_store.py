"""Carried beliefs: the discount formula, forgetting, files that are read back or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollwise.beliefs import BeliefStore
from rollwise.types import RollwiseError


def filled(**settings: Any) -> BeliefStore:
    store = BeliefStore((0.5, 2.0), discount=0.5, **settings)
    store.update(["a", "b"], [3, 0], [5, 8])
    store.update(["a", "ü"], [8, 1], [0, 0])
    return store


def test_beliefs_follow_the_discount_formula() -> None:
    store = filled()
    assert store.prior(["a", "b", "ü", "never"]).tolist() == [
        [0.5 + 0.5 * 3 + 8, 2 + 0.5 * 5],
        [0.5, 2 + 8],
        [1.5, 2],
        [0.5, 2],
    ]


visits = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=4), max_size=8
)


@given(history=visits, rho=st.floats(0, 1), base=st.tuples(st.floats(0.1, 5), st.floats(0.1, 5)))
def test_any_history_gives_what_one_prompt_at_a_time_would(history: Any, rho: float, base: Any) -> None:
    store, plain = BeliefStore(base, rho), dict.fromkeys("abcd", base)
    for step in history:
        store.update(list(step), [s for s, _ in step.values()], [f for _, f in step.values()])
        for key, (s, f) in step.items():
            if s + f:
                a, b = plain[key]
                plain[key] = base[0] + rho * (a - base[0]) + s, base[1] + rho * (b - base[1]) + f
    assert store.prior(list("abcd")) == pytest.approx(np.array([plain[key] for key in "abcd"]))


def test_unknown_outcomes_leave_the_belief_and_are_not_kept() -> None:
    store = filled()
    before = store.prior(["a", "new"])
    store.update(["a", "new"], [0, 0], [0, 0])
    assert (store.prior(["a", "new"]) == before).all() and len(store) == 3


def test_an_id_given_twice_is_one_visit_with_the_sums() -> None:
    twice, once = filled(), filled()
    twice.update(["a", "a"], [1, 2], [0, 3])
    once.update(["a"], [3], [3])
    assert (twice.prior(["a"]) == once.prior(["a"])).all()


def test_a_new_base_moves_every_belief() -> None:
    store = filled()
    before = store.prior(["a", "never"])
    store.base = (1.5, 3.0)
    assert store.prior(["a", "never"]) == pytest.approx(before + 1)


@given(limit=st.integers(1, 40), seed=st.integers(0, 20))
@settings(max_examples=30)
def test_with_a_limit_the_longest_unvisited_are_forgotten(limit: int, seed: int) -> None:
    rng, store, last = np.random.default_rng(seed), BeliefStore(limit=limit), {}
    for visit in range(60):
        key = str(rng.integers(60))
        store.update([key], [1], [0])
        last[key] = visit
        assert len(store) <= limit
        assert store.prior([key])[0, 0] > 1  # the prompt just visited is kept
    kept = {key for key in last if store.prior([key])[0, 0] > 1}
    assert len(kept) == len(store)
    assert kept == set(sorted(last, key=last.__getitem__)[-len(kept) :])


def test_saved_and_loaded_it_decides_alike(tmp_path: Path) -> None:
    store = filled(limit=3)
    store.save(tmp_path / "beliefs.npz")
    again = BeliefStore.load(tmp_path / "beliefs.npz")
    for one in (store, again):
        one.update(["c", "d", "a"], [1, 2, 3], [3, 2, 1])
    ids = ["a", "b", "c", "d", "ü", "never"]
    assert (again.prior(ids) == store.prior(ids)).all()
    assert (again.base, again.discount, again.limit, len(again)) == (store.base, 0.5, 3, len(store))
    assert [path.name for path in tmp_path.iterdir()] == ["beliefs.npz"]


def test_the_state_survives_json() -> None:
    store, again = filled(), BeliefStore()
    text = json.dumps(store.state_dict(), default=lambda array: array.tolist())
    again.load_state_dict(json.loads(text))
    assert (again.prior(["a", "b", "ü", "x"]) == store.prior(["a", "b", "ü", "x"])).all()


def test_an_empty_store_is_saved_too(tmp_path: Path) -> None:
    BeliefStore().save(tmp_path / "empty.npz")
    assert len(BeliefStore.load(tmp_path / "empty.npz")) == 0


@pytest.mark.parametrize("keep", [0, 10, 200, -30])
def test_a_damaged_file_is_one_line(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "beliefs.npz"
    filled().save(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RollwiseError, match="^beliefs: .*(damaged|no belief file)"):
        BeliefStore.load(path)


def test_flipped_bytes_never_load_as_other_beliefs(tmp_path: Path) -> None:
    path = tmp_path / "beliefs.npz"
    filled().save(path)
    sound, expected = path.read_bytes(), filled().prior(["a", "b", "ü"])
    refused = 0
    for at in range(0, len(sound), 7):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x55]) + sound[at + 1 :])
        try:
            assert (BeliefStore.load(path).prior(["a", "b", "ü"]) == expected).all()
        except RollwiseError as error:
            assert str(error).startswith("beliefs: ")
            refused += 1
    assert refused > 50


def test_foreign_files_and_states_are_refused_and_change_nothing(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    with open(tmp_path / "pickled.npz", "wb") as file:
        np.savez(file, format=np.array([{}], dtype=object))
    for name in ("other.npz", "array.npy", "pickled.npz", "absent.npz"):
        with pytest.raises(RollwiseError, match=f"^beliefs: .*{'' if name == 'other.npz' else name}"):
            BeliefStore.load(tmp_path / name)
    store = filled()
    before = store.prior(["a"])
    state = store.state_dict()
    for wrong in ({"format": 9}, {"ends": state["ends"][:-1]}, {"evidence": -state["evidence"]}, {"discount": 2.0}):
        with pytest.raises(RollwiseError):
            store.load_state_dict(state | wrong)
    assert (store.prior(["a"]) == before).all()


def test_an_unwritable_path_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RollwiseError, match="cannot be written"):
        filled().save(tmp_path / "absent" / "beliefs.npz")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"discount": 1.5}, "prior_discount: 1.5"),
        ({"discount": -0.1}, "prior_discount: -0.1"),
        ({"limit": 0}, "prior_limit: 0"),
        ({"prior": (0.0, 1.0)}, "prior: "),
    ],
)
def test_settings_out_of_range_are_named(given: dict[str, Any], line: str) -> None:
    with pytest.raises(RollwiseError, match=line):
        BeliefStore(**given)


def test_counts_that_do_not_fit_are_refused() -> None:
    store = filled()
    for s, f in (([1], [1]), ([1, -1], [0, 0]), ([0.5, 1], [0, 0])):
        with pytest.raises(RollwiseError):
            store.update(["a", "b"], s, f)


def test_a_prompt_takes_few_bytes_and_the_count_of_them_is_right() -> None:
    import tracemalloc

    tracemalloc.start()
    store = BeliefStore()
    for first in range(0, 20_000, 500):
        store.update([f"prompt-{k}" for k in range(first, first + 500)], np.full(500, 3), np.full(500, 5))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert store.nbytes == pytest.approx(held, rel=0.1)
    assert store.nbytes / len(store) < 250
