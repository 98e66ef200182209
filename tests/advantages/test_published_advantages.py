"""The published estimators beside GRPO's: golden values by hand or from the papers, and the contract they all keep."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from rollwise.advantages import ADVANTAGES, GRPO, KRPO, MCGRPO, MSGRPO, RLOO, Bayesian, GlobalBaseline, get_advantage
from rollwise.advantages.mc_grpo import lower_median
from rollwise.advantages.ms_grpo import block_sizes
from rollwise.effective_weight import exact_weight
from rollwise.testing import check_advantage
from rollwise.types import RollwiseError


def apply(estimator: Any, rewards: list[float], groups: list[Any] | None = None) -> np.ndarray:
    size = len(rewards)
    return estimator(np.array(rewards, dtype=float), groups or ["g"] * size, np.ones((size, 2)), np.arange(size))


@pytest.mark.parametrize("estimator", ADVANTAGES.values(), ids=ADVANTAGES)
def test_every_estimator_keeps_the_contract(estimator: Any) -> None:
    check_advantage(estimator)


@pytest.mark.parametrize("estimator", [MCGRPO(floor=0.1), MCGRPO(rescale=False), MSGRPO(seed=3), Bayesian(form="off")])
def test_their_variants_keep_it_too(estimator: Any) -> None:
    check_advantage(estimator)


def test_rloo_is_the_reward_minus_the_mean_of_the_others() -> None:
    rewards = [1.0, 0.0, 0.0, 0.5]
    expected = [r - (sum(rewards) - r) / 3 for r in rewards]
    assert apply(RLOO(), rewards) == pytest.approx(expected)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_rloo_weighs_a_prompt_by_its_rollouts_at_every_rate(n: int) -> None:
    assert exact_weight(n, [0.05, 0.5, 0.9], "rloo").weight == pytest.approx(np.full(3, float(n)))


def test_krpo_vectors() -> None:
    assert apply(KRPO(), [1, 0, 1, 1]) == pytest.approx([0.0995, -7.04813, 5.81469, 5.02727], abs=5e-5)
    assert apply(KRPO(), [1, 1, 1, 1]) == pytest.approx([0.0995, 0.0705, 0.0575, 0.0497], abs=5e-5)
    assert apply(KRPO(), [0, 0, 0]).tolist() == [0, 0, 0]


def test_krpo_follows_the_order_of_issue_within_each_group() -> None:
    mixed = KRPO()(np.array([0.0, 1.0, 1.0, 0.0]), ["a", "b", "a", "b"], np.ones((4, 2)), np.array([3, 0, 2, 1]))
    assert mixed[[2, 0]] == pytest.approx(apply(KRPO(), [1, 0]))
    assert mixed[[1, 3]] == pytest.approx(apply(KRPO(), [1, 0]))


def test_mc_grpo_by_hand_on_graded_rewards() -> None:
    """Median .4; |r - .4| = .4 .3 0 .2 .6, median .3; four of five rows move."""
    found = apply(MCGRPO(), [0.0, 0.1, 0.4, 0.6, 1.0])
    assert found == pytest.approx(np.array([-0.4, -0.3, 0.0, 0.2, 0.6]) / 0.301 * 5 / 4)
    plain = apply(MCGRPO(rescale=False), [0.0, 0.1, 0.4, 0.6, 1.0])
    assert plain == pytest.approx(np.array([-0.4, -0.3, 0.0, 0.2, 0.6]) / 0.301)


def test_mc_grpo_guard_replaces_a_deviation_of_zero() -> None:
    rewards = [0.0, 1.0, 0.0, 0.0, 1.0]
    std = float(np.std(rewards, ddof=1))
    assert apply(MCGRPO(), rewards) == pytest.approx(np.array([0, 1, 0, 0, 1]) / (std + 1e-3) * 5 / 2)
    assert apply(MCGRPO(floor=0.5), rewards) == pytest.approx(np.array([0, 1, 0, 0, 1]) / 0.501 * 5 / 2)
    published = apply(MCGRPO(floor=0.0, rescale=False), rewards)
    assert published.max() == pytest.approx(1000.0)
    assert np.abs(apply(MCGRPO(), rewards)).max() < 10


@pytest.mark.parametrize("n", range(2, 9))
def test_rewards_of_0_and_1_always_need_the_guard(n: int) -> None:
    for wins in range(n + 1):
        rewards = np.repeat([1.0, 0.0], [wins, n - wins])
        assert lower_median(np.abs(rewards - lower_median(rewards))) == 0


def test_ms_grpo_at_two_rollouts_is_grpo() -> None:
    assert apply(MSGRPO(), [1, 0]) == pytest.approx(apply(GRPO(), [1, 0]))
    assert [block_sizes(n) for n in (2, 3, 4, 9)] == [[2], [2, 3], [2, 4], [2, 4, 8, 9]]


def test_ms_grpo_is_the_mean_over_sizes_of_normed_blocks() -> None:
    """Three rewards have two sizes: three pairs of neighbours on the circle, and the whole; every pair is one."""
    rewards = [1.0, 0.0, 0.0]
    pair = 0.5 / (np.sqrt(0.5) + 1e-4)
    of_pairs = np.array([pair, -pair / 2, -pair / 2])
    assert apply(MSGRPO(), rewards) == pytest.approx((of_pairs + apply(GRPO(), rewards)) / 2)


def test_ms_grpo_sums_to_zero_in_groups_of_any_size_and_is_proportional_to_grpo_on_average() -> None:
    for size in range(2, 12):
        rewards = np.arange(size) % 3 == 0
        assert apply(MSGRPO(), rewards.tolist()).sum() == pytest.approx(0, abs=1e-9)
    mean = np.mean([apply(MSGRPO(), list(order)) for order in permutations([1.0, 1.0, 0.0, 0.0, 0.0])], axis=0)
    assert mean == pytest.approx(np.zeros(5), abs=1e-9)
    successes = [apply(MSGRPO(seed=seed), [1, 1, 0, 0, 0])[:2].mean() for seed in range(40)]
    assert 0 < np.mean(successes) < apply(GRPO(), [1, 1, 0, 0, 0])[0]


def test_global_baseline_takes_every_round_into_its_mean() -> None:
    assert apply(GlobalBaseline(), [1, 0, 0, 0]) == pytest.approx([0.75, -0.25, -0.25, -0.25])


@pytest.mark.parametrize(
    ("form", "lost", "won"), [("posterior", -0.4472, 0.4472), ("constant", -2 / 3, 2 / 3), ("off", 0.0, 0.0)]
)
def test_bayesian_vectors_of_equal_groups(form: Any, lost: float, won: float) -> None:
    found = apply(Bayesian(form=form), [0] * 4 + [1] * 4 + [1, 0], ["a"] * 4 + ["b"] * 4 + ["c"] * 2)
    assert found[:4] == pytest.approx([lost] * 4, abs=5e-5)
    assert found[4:8] == pytest.approx([won] * 4, abs=5e-5)
    assert found[8:] == pytest.approx(apply(GRPO(), [1, 0]))


def test_bayesian_leaves_equal_rewards_that_are_no_outcomes_alone() -> None:
    assert apply(Bayesian(), [0.3, 0.3, 0.3]) == pytest.approx(np.zeros(3))
    assert apply(Bayesian(), [-1.0, -1.0]).tolist() == [0, 0]
    assert apply(Bayesian(a=2.0, b=1.0), [0.0]) == pytest.approx([-1.0])


def test_an_estimator_of_ones_own_is_found_by_its_address(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_advantages_here.py").write_text(
        "import numpy as np\n\n\nclass Plain:\n    name = 'plain'\n\n"
        "    def __call__(self, rewards, group_ids, beliefs, order):\n        return np.nan_to_num(rewards)\n\n\n"
        "PLAIN = Plain()\n\n\n"
        "def nameless(rewards, group_ids, beliefs, order):\n    return rewards\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert get_advantage("own_advantages_here:Plain").name == "plain"
    assert get_advantage("own_advantages_here:PLAIN").name == "plain"
    with pytest.raises(RollwiseError, match="has no name"):
        get_advantage("own_advantages_here:nameless")
