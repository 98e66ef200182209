"""The published rules as a family: every one keeps the contract, is found by name, and says what it cannot do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollwise.allocators import ALLOCATORS, get_allocator
from rollwise.allocators.greedy import spend_greedily
from rollwise.testing import check_allocator
from rollwise.types import RollwiseError

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ALLOCATORS if name != "adaroll"),
    ("hora", {"rounds": 3, "mass_aware": True}),
    ("hora", {"first": 50}),
    ("aero", {"explore": 3, "total": 9, "increment": 1, "rescue_rate": 0.4}),
    ("ar3po", {"stages": 2, "size": 9}),
    ("reinforce_ada", {"stop": "positive", "group": 6}),
    ("vip", {"form": "dr_grpo"}),
    ("knapsack", {"low": 0, "high": 3}),
    ("dars", {"form": "hw", "root": True}),
    ("dars", {"first": 30}),
    ("gvm_equal", {"first": 2, "alpha": 0.1}),
    ("optpo", {"right": 0.9, "increment": 1, "most": 5}),
]


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=[f"{name}-{settings}" for name, settings in VARIANTS])
def test_every_rule_keeps_the_contract(name: str, settings: dict[str, Any]) -> None:
    check_allocator(get_allocator(name, **settings), situations=12 if name == "neyman" else 50)


@pytest.fixture
def own_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables solved here leave the user's cache alone."""
    monkeypatch.setenv("ROLLWISE_CACHE", str(tmp_path))


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    "settings", [{}, {"utility": "sum_variance", "block_prompts": 2}, {"utility": "min_max_reward"}]
)
def test_adaroll_keeps_it_too(settings: dict[str, Any]) -> None:
    check_allocator(get_allocator("adaroll", **settings), situations=6)


@given(
    values=st.lists(st.lists(st.floats(0, 1), min_size=5, max_size=5), min_size=1, max_size=3),
    space=st.lists(st.integers(0, 4), min_size=3, max_size=3),
    amount=st.integers(0, 8),
)
def test_greedy_is_the_best_of_all_allocations(values: list[list[float]], space: list[int], amount: int) -> None:
    gains = [sorted(row, reverse=True) for row in values]
    limits = np.array(space[: len(gains)])
    found = spend_greedily(lambda slot, k: gains[slot][k], range(len(gains)), limits, amount)
    assert (found <= limits).all() and found.sum() == min(amount, limits.sum())

    def worth(counts: Any) -> float:
        return sum(sum(row[:n]) for row, n in zip(gains, counts, strict=True))

    every = np.stack(np.meshgrid(*(np.arange(limit + 1) for limit in limits)), axis=-1).reshape(-1, len(gains))
    assert worth(found) == pytest.approx(max(worth(counts) for counts in every if counts.sum() <= amount), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("hora", {"frist": 4}, "hora has no setting 'frist'; did you mean 'first'"),
        ("uniform", {"depth": 4}, "uniform has no setting 'depth'; it has none"),
        ("hora", {"first": 0}, "hora: first 0 is out of range"),
        ("hora", {"rounds": 1.5}, "hora: rounds 1.5"),
        ("aero", {"explore": 8, "total": 4}, "aero: total 4 is out of range; give a whole number of 8 or more"),
        ("aero", {"rescue_rate": 1.0}, "rescue_rate 1.0"),
        ("reinforce_ada", {"stop": "balance"}, "did you mean 'balanced'"),
        ("vip", {"form": "grpo"}, "did you mean 'dr_grpo'"),
        ("vip", {"low": 1}, "vip: low 1"),
        ("knapsack", {"low": 4, "high": 2}, "knapsack: high 2"),
        ("dars", {"form": "ht"}, "valid: et, hw|did you mean"),
        ("gvm", {"alpha": -1}, "alpha -1"),
        ("optpo", {"right": 0.1}, "0 < wrong < right < 1"),
        ("optpo", {"error": 0.7}, "error 0.7"),
        ("horra", {}, "did you mean 'hora'"),
    ],
)
def test_mistakes_are_named(name: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(RollwiseError, match=words):
        get_allocator(name, **settings)


def test_settings_of_adaroll_do_not_disturb_the_others() -> None:
    assert get_allocator("hora", utility="sum_variance", sequential=True, first=3).first == 3  # type: ignore[attr-defined]


def test_a_rule_of_ones_own_is_found_by_its_address(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_rules_here.py").write_text(
        "from rollwise.allocators.uniform import Uniform\n\n\n"
        "class Mine(Uniform):\n    name = 'mine'\n\n    def __init__(self, share=1.0):\n        self.share = share\n\n\n"
        "class Nothing:\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    rule = get_allocator("own_rules_here:Mine", share=0.5, utility="min_variance")
    assert rule.name == "mine" and rule.share == 0.5  # type: ignore[attr-defined]
    with pytest.raises(RollwiseError, match="own_rules_here:Mine has no setting 'depth'; valid: share"):
        get_allocator("own_rules_here:Mine", depth=2)
    with pytest.raises(RollwiseError, match="gives no allocator; rollwise.testing.check_allocator"):
        get_allocator("own_rules_here:Nothing")


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), variant=st.sampled_from([v for v in VARIANTS if v[0] != "neyman"]))
def test_no_situation_breaks_the_budget(seed: int, variant: tuple[str, dict[str, Any]]) -> None:
    check_allocator(get_allocator(variant[0], **variant[1]), seed=seed, situations=12)
