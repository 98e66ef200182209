"""Curators: what trains, with what weight, through a real step; and that decisions go on from a saved state."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.allocators import Uniform
from rollwise.curators import CURATORS, Curated, Curator, get_curator
from rollwise.curators.confidence import group_value
from rollwise.curators.subsampling import spread_most
from rollwise.step import Step
from rollwise.testing import check_curator
from rollwise.types import Rollout, RollwiseError, StepRecord


def close(
    outcomes: dict[str, Sequence[float | None]], *curators: Curator, index: int = 0, seed: int = 0, **settings: Any
) -> StepRecord:
    """A closed step whose prompts answered as given, all alike in number."""
    size = len(next(iter(outcomes.values())))
    step = Step(
        list(outcomes),
        Uniform(),
        size * len(outcomes),
        rng=np.random.default_rng(seed),
        index=index,
        curators=curators,
        waves=1,
        **settings,
    )
    left = {key: list(values) for key, values in outcomes.items()}

    def answer(rollout: Rollout) -> Rollout:
        reward = left[rollout.prompt_id].pop(0)
        outcome = None if reward is None else float(reward > 0.5)
        return rollout.result(outcome, reward=reward, tokens=4, logprob=4 * float(np.log(0.8)))

    while wave := step.next_wave():
        step.observe(*map(answer, wave.rollouts))
    return step.close()


MIXED = {"a": [1, 0, 0, 0], "b": [1, 1, 0, 0], "c": [0, 0, 0, 0], "d": [1, 1, 1, 1]}


# -- replay ---------------------------------------------------------------------------------------------------------


def test_replay_takes_the_places_of_dead_rows_only() -> None:
    replay = get_curator("replay", warmup=0)
    first = close(MIXED, replay)
    assert first.trained.tolist() == list(range(8)), "dead groups leave, fresh ones all stay"
    assert not first.stored
    second = close(MIXED, replay, index=1)
    assert len(second.trained) == 8
    assert len(second.stored) == 4, "round(0.5 * 8), within the 8 free places"
    assert {row.step for row in second.stored} == {0}
    alive = {"a": [1, 0, 1, 0], "b": [1, 1, 0, 0], "e": [0, 1, 0, 0], "f": [1, 1, 1, 0]}
    assert not close(alive, replay, index=2).stored, "no dead row, no place"
    assert not close({"c": [0, 0, 0, 0]}, replay, index=3).stored, "nothing is replayed without a fresh live group"


def test_replayed_rows_keep_the_advantage_they_were_made_with() -> None:
    replay = get_curator("replay", warmup=0, share=1.0)
    first = close(MIXED, replay, weighting="per_prompt")
    born = {r.id: a for r, a in zip(first.rollouts, first.advantages, strict=True)}
    second = close(MIXED, replay, index=1)
    assert len(second.stored) == 8
    for row in second.stored:
        assert row.advantage == born[row.rollout.id]


def test_replay_respects_warm_up_age_and_capacity() -> None:
    replay = get_curator("replay", warmup=2, max_age=2, capacity=10)
    sizes, ages = [], []
    for index in range(6):
        record = close(
            MIXED if index != 4 else {"a": [0] * 4, "b": [0] * 4, "c": [0] * 4, "d": [0] * 4}, replay, index=index
        )
        sizes.append(len(record.stored))
        made = index - (index > 4)  # the idle step made no update
        ages += [made - row.step for row in record.stored]
        assert len(replay.held) <= 10
    assert sizes == [0, 0, 4, 4, 0, 4]
    assert max(ages) <= 2


def test_replay_draws_by_the_power_of_the_advantage() -> None:
    replay = get_curator("replay", warmup=0, share=0.25, capacity=1000, max_age=1000)
    close(MIXED, replay)
    drawn = []
    for seed in range(300):
        fresh = get_curator("replay", warmup=0, share=0.25, max_age=1000)
        fresh.load_state_dict(replay.state_dict())
        drawn += [abs(row.advantage or 0) for row in close(MIXED, fresh, index=1, seed=seed).stored]
    # in group a one success of |A| 1.5 (x1) and three failures of 0.5; in b four of 0.866
    sizes = np.array([1.5, 0.5, 0.5, 0.5] + [0.866] * 4)
    first = np.sqrt(sizes) / np.sqrt(sizes).sum()
    assert np.mean(np.isclose(drawn, 1.5, atol=0.01)) == pytest.approx(first[0], abs=0.035)
    assert len(drawn) == 600


# -- reuse ----------------------------------------------------------------------------------------------------------


def test_reuse_borrows_a_past_success_for_a_failed_group() -> None:
    reuse = get_curator("reuse")
    first = close({"a": [1, 0, 1, 0], "b": [0, 0, 0, 0]}, reuse)
    assert not first.stored
    second = close({"a": [0, 0, 0, 0], "b": [0, 0, 0, 0]}, reuse, index=1, advantage="dr_grpo")
    assert second.trained.tolist() == [0, 1, 2, 4, 5, 6, 7], "the last failure gave way"
    (row,) = second.stored
    assert (row.rollout.id, row.step, row.advantage) == ("0-2", 0, 0.75), "the latest success"
    assert second.advantages.tolist() == [-0.25] * 3 + [0.0] * 5
    assert not close({"a": [0, 1, 0, 0]}, reuse, index=2).stored, "a group with a success borrows nothing"


def test_reuse_forgets_by_age() -> None:
    reuse = get_curator("reuse", max_age=2)
    close({"a": [1, 0]}, reuse)
    assert len(close({"a": [0, 0]}, reuse, index=2).stored) == 1
    assert not close({"a": [0, 0]}, reuse, index=3).stored


def test_a_borrowed_row_weighs_like_its_prompt() -> None:
    reuse = get_curator("reuse")
    close({"a": [1, 0], "b": [1, 0]}, reuse)
    settings = {"objective": "log", "advantage": "dr_grpo", "prior": np.array([[1.0, 3.0], [3.0, 1.0]])}
    record = close({"a": [0, 0], "b": [1, 0]}, reuse, index=1, **settings)
    assert record.stored[0].advantage == pytest.approx(-record.advantages[0])


# -- sub-sampling ---------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=2, max_size=7), st.integers(2, 5))
def test_pods_subset_is_the_most_varied_of_all(rewards: list[float], count: int) -> None:
    values = np.array(rewards)
    count = min(count, len(values))
    found = spread_most(values, count)
    best = max(np.var(values[list(subset)]) for subset in itertools.combinations(range(len(values)), count))
    assert len(found) == count
    assert np.var(values[found]) == pytest.approx(best, abs=1e-9)


def test_pods_trains_on_the_subsets_own_statistics() -> None:
    record = close({"a": [1, 1, 1, 1, 1, 0, 1, 1]}, get_curator("pods"), advantage="dr_grpo")
    assert len(record.trained) == 2
    assert sorted(record.advantages[record.trained].tolist()) == [-0.5, 0.5]
    assert np.count_nonzero(record.advantages) == 2
    assert record.factors["curator"].sum() == 2


def test_pods_leaves_unknown_rewards_out() -> None:
    record = close({"a": [None, 1, None, 0]}, get_curator("pods", keep=3))
    assert record.trained.tolist() == [1, 3]


def test_aero_keeps_successes_and_as_many_failures_of_a_hard_group() -> None:
    record = close(MIXED, get_curator("aero", dead_keep=2), advantage="dr_grpo")
    kept = {key: [p for p in record.trained if record.rollouts[p].prompt_id == key] for key in MIXED}
    assert {key: len(rows) for key, rows in kept.items()} == {"a": 2, "b": 4, "c": 2, "d": 2}
    assert kept["a"][0] == 0
    assert record.advantages[kept["a"]].tolist() == [0.75, -0.25], "statistics of all four"


def test_balanced_keeps_halves_where_it_can() -> None:
    groups = {"a": [1, 0, 0, 0, 0, 0], "b": [1, 1, 1, 0, 0, 0], "c": [0] * 6, "d": [1, 1, 1, 1, 1, 0]}
    record = close(groups, get_curator("balanced"), advantage="dr_grpo")
    right = {
        key: [record.rollouts[p].reward for p in record.trained if record.rollouts[p].prompt_id == key]
        for key in groups
    }
    assert {key: sum(values) for key, values in right.items()} == {"a": 1, "b": 2, "c": 0, "d": 3}
    assert {len(values) for values in right.values()} == {4}
    assert record.advantages[0] == pytest.approx(5 / 6), "the baseline is the mean of everything drawn"


# -- weights --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rewards", "value"), [([1, 1, 0, 0], 0.8), ([1, 0, 0, 0], 0.6), ([1, 1, 1, 1], 0.0)])
def test_group_value_has_the_published_numbers(rewards: list[float], value: float) -> None:
    record = close({"a": rewards})
    assert group_value(record, record.trained) == pytest.approx(value)


def test_codapo_multiplies_a_groups_advantages() -> None:
    plain, record = close(MIXED), close(MIXED, get_curator("codapo"))
    factor = np.repeat([0.7, 0.9, 0.1, 0.1], 4)
    assert record.factors["curator"] == pytest.approx(factor)
    assert record.advantages == pytest.approx(plain.advantages * factor)


# -- dynamic sampling -----------------------------------------------------------------------------------------------


def test_dynamic_sampling_waits_for_a_full_batch() -> None:
    dynamic = get_curator("dynamic", groups=3)
    first = close(MIXED, dynamic)
    assert first.idle
    assert first.metrics["idle"] == 1.0
    second = close(MIXED, dynamic, index=1)
    assert [row.rollout.id for row in second.stored] == [f"0-{k}" for k in range(8)]
    assert second.trained.tolist() == [0, 1, 2, 3], "the surplus group is dropped"
    assert second.metrics["dynamic_surplus"] == 1.0
    assert [row.advantage for row in second.stored] == first_advantages()
    assert not dynamic.held


def first_advantages() -> list[float]:
    return close(MIXED).advantages[:8].tolist()


def test_live_by_outcome_wants_successes_and_failures_and_not_only_rewards_that_differ() -> None:
    shaped = {"a": [1.0, 0.8, 1.0, 0.9], "b": [1.0, 0.0, 0.8, 0.0], "c": [0.0, -0.5, 0.0, 0.0]}
    assert close(shaped, get_curator("live")).trained.tolist() == list(range(12))
    assert close(shaped, get_curator("live", live_by="outcome")).trained.tolist() == [4, 5, 6, 7]


def test_dynamic_sampling_gives_up_waiting_after_its_rounds() -> None:
    dynamic = get_curator("dynamic", rounds=2)
    assert close(MIXED, dynamic).idle
    assert len(close(MIXED, dynamic, index=1).trained) == 8
    live = get_curator("live")
    assert close(MIXED, live).trained.tolist() == list(range(8))
    assert close({"c": [0, 0]}, live).idle


# -- all of them ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CURATORS)
def test_every_curator_keeps_the_contract(name: str) -> None:
    # dynamic sampling fills an update with the groups of several steps, which may have been larger than the last one
    check_curator(get_curator(name, **({"warmup": 2} if name == "replay" else {})), collects=name == "dynamic")


def history(curator: Curator, steps: range) -> list[tuple[list[int], list[tuple[str, float | None]], list[float]]]:
    coins = np.random.default_rng(1)
    rewards = coins.random((40, 4, 6)) < np.array([0.1, 0.5, 0.9, 0.3])[:, None]
    found = []
    for index in steps:
        outcomes = dict(zip("abcd", rewards[index].astype(float).tolist(), strict=True))
        record = close(outcomes, curator, index=index, seed=index)
        stored = [(row.rollout.id, row.advantage) for row in record.stored]
        found.append((record.trained.tolist(), stored, record.advantages.tolist()))
        assert len(record.trained) + len(stored) <= len(record.rollouts)
        ids = {key for key, _ in stored}
        assert not ids & {r.id for r in record.rollouts}
    return found


@pytest.mark.parametrize("name", CURATORS)
def test_decisions_go_on_from_a_saved_state(name: str) -> None:
    settings = {"warmup": 2} if name == "replay" else {}
    whole = history(get_curator(name, **settings), range(10))
    half = get_curator(name, **settings)
    assert history(half, range(6)) == whole[:6]
    other = get_curator(name, **settings)
    other.load_state_dict(json.loads(json.dumps(half.state_dict())))
    assert history(other, range(6, 10)) == whole[6:]


@pytest.mark.parametrize("name", CURATORS)
def test_switching_a_curator_off_changes_rows_or_weights(name: str) -> None:
    settings = {"warmup": 0} if name == "replay" else {}
    curator = get_curator(name, **settings)
    close({"a": [1, 0, 0, 0], "c": [1, 0, 0, 1]}, curator)
    outcomes = {"a": [1, 0, 0, 0, 0, 0, 0, 0], "c": [0] * 8}
    plain, record = close(outcomes, index=1), close(outcomes, curator, index=1)
    same = np.array_equal(plain.advantages, record.advantages) and len(record.trained) == len(plain.trained)
    assert not same or record.stored


@pytest.mark.parametrize("name", CURATORS)
def test_what_may_be_asked_for_again_is_held_and_no_more_than_that(name: str) -> None:
    curator = get_curator(name, **({"warmup": 0} if name == "replay" else {}))
    held: frozenset[str] = frozenset()
    for index in range(5):
        record = close(MIXED, curator, index=index)
        assert {row.rollout.id for row in record.stored} <= held
        held = curator.held
        assert held == frozenset() or "payload" in curator.needs


def test_curators_are_applied_one_after_the_other() -> None:
    replay = get_curator("replay", warmup=0)
    close(MIXED, get_curator("codapo"), replay)
    record = close(MIXED, get_curator("codapo"), replay, index=1)
    assert record.factors["curator"][:8] == pytest.approx(np.repeat([0.7, 0.9], 4))
    assert record.factors["curator"][8:].tolist() == [0.0] * 8
    assert len(record.stored) == 4


def test_per_prompt_weighting_counts_the_rows_that_train() -> None:
    record = close(MIXED, get_curator("aero", dead_keep=0), weighting="per_prompt")
    by_group = np.bincount(record.slots[record.trained], weights=record.factors["weighting"][record.trained])
    assert by_group[:2] == pytest.approx([3.0, 3.0])


class Scripted:
    """A curator that answers as told."""

    name = "scripted"
    needs: frozenset[str] = frozenset()
    weighs_by: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()

    def __init__(self, rows: Any, weights: Any) -> None:
        self.answer = Curated(np.array(rows), np.array(weights))

    def curate(self, record: StepRecord, rng: np.random.Generator) -> Curated:
        return self.answer

    def metrics(self) -> dict[str, float]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


@pytest.mark.parametrize(
    ("rows", "weights", "message"),
    [
        ([1, 0], [1.0, 1.0], "ascending"),
        ([0, 99], [1.0, 1.0], "ascending"),
        ([0, 1], [1.0], "shape"),
        ([0, 1], [1.0, -1.0], "negative"),
        ([0, 1], [1.0, np.nan], "not finite"),
        ([0.0, 1.0], [1.0, 1.0], "float64"),
    ],
)
def test_a_curator_that_breaks_its_contract_is_named(rows: Any, weights: Any, message: str) -> None:
    with pytest.raises(RollwiseError, match=f"curator scripted: .*{message}"):
        close(MIXED, Scripted(rows, weights))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("replya", {}, "did you mean 'replay'"),
        ("replay", {"share": -1}, "share"),
        ("replay", {"ages": 3}, "has no setting 'ages'"),
        ("pods", {"keep": 1}, "keep"),
        ("dynamic", {"rounds": 0}, "rounds"),
    ],
)
def test_unknown_names_and_settings_are_refused(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RollwiseError, match=message):
        get_curator(name, **settings)
