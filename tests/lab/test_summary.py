"""Summaries against numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rollwise.lab.runs import brief
from rollwise.lab.summary import ALL, baseline_of, compare, measures, rollouts_to_reach, summarise
from rollwise.types import RollwiseError

METRICS = ("dead_prompt_share", "informative_rollout_share", "unsolved_share", "alloc_entropy", "max_n")


def result(arm: str, seed: int, accuracies: list[float], task: str = "chains", spacing: int = 100) -> dict[str, Any]:
    curve = [
        {"rollouts": place * spacing, "sampled": value, "greedy": value + 0.1, "by_class": [value]}
        for place, value in enumerate(accuracies)
    ]
    spent = (len(accuracies) - 1) * spacing
    return {
        "arm": arm,
        "task": task,
        "seed": seed,
        "rollouts": spent,
        "steps": 2,
        "tokens": 5 * spent,
        "trained_rollouts": spent // 2,
        "seconds": 3.0,
        "curve": curve,
        "metrics": {key: [0.25, 0.75] for key in METRICS},
    }


def test_measures_of_a_curve() -> None:
    found = measures(result("uniform", 0, [0.2, 0.4, 0.8]))
    assert found["final"] == 0.8 and found["greedy"] == pytest.approx(0.9)
    assert found["area"] == pytest.approx((0.3 + 0.6) / 2)


@pytest.mark.parametrize(("accuracy", "spent"), [(0.1, 0.0), (0.3, 50.0), (0.4, 100.0), (0.7, 175.0), (0.9, None)])
def test_rollouts_to_reach_an_accuracy(accuracy: float, spent: float | None) -> None:
    found = rollouts_to_reach(result("uniform", 0, [0.2, 0.4, 0.8]), accuracy)
    assert found == (None if spent is None else pytest.approx(spent))


def test_a_comparison_says_how_many_seeds_it_would_need() -> None:
    found = compare([0.01, 0.02, 0.03])
    assert found["mean"] == pytest.approx(0.02) and found["sd"] == pytest.approx(0.01)
    # ((1.960 + 0.842) / 2)^2 = 1.96, and two is the least
    assert found["seeds_needed"] == 2
    assert found["detectable"] == pytest.approx(2.8016 * 0.01 / math.sqrt(3), rel=1e-4)
    noisy = compare([-0.04, 0.0, 0.05, 0.03])
    assert noisy["seeds_needed"] == math.ceil((2.8016 * noisy["sd"] / 0.01) ** 2)
    assert noisy["interval"][0] < 0 < noisy["mean"] < noisy["interval"][1]


def test_a_bootstrap_interval_covers_about_two_standard_errors() -> None:
    values = [(-1) ** k * (k % 7) / 100 for k in range(200)]
    found = compare(values)
    half = (found["interval"][1] - found["interval"][0]) / 2
    assert half == pytest.approx(1.96 * found["sd"] / math.sqrt(200), rel=0.05)


def test_a_run_that_ends_by_tokens_is_measured_along_them() -> None:
    points = zip((0, 10, 90), (0, 600, 800), (0.2, 0.4, 0.6), strict=True)
    curve = [{"rollouts": r, "tokens": t, "sampled": p, "greedy": p} for r, t, p in points]
    by_tokens, by_rollouts = {"curve": curve, "axis": "tokens"}, {"curve": curve}
    assert measures(by_tokens)["area"] == pytest.approx((0.3 * 600 + 0.5 * 200) / 800)
    assert measures(by_rollouts)["area"] == pytest.approx((0.3 * 10 + 0.5 * 80) / 90)
    assert rollouts_to_reach(by_tokens, 0.5) == pytest.approx(700)


def test_one_seed_has_a_mean_only() -> None:
    assert compare([0.5]) == {"seeds": 1, "mean": 0.5, "sd": None, "interval": None, "seeds_needed": None}


def test_rows_pair_by_seed_and_leave_out_what_has_no_partner() -> None:
    runs = [
        result("uniform", 0, [0.2, 0.5]),
        result("uniform", 1, [0.2, 0.9]),
        result("min_variance", 0, [0.2, 0.6]),
        result("min_variance", 1, [0.2, 0.8]),
        result("min_variance", 2, [0.2, 0.1]),
    ]
    uniform, other = summarise(runs)
    assert "baseline" not in uniform and other["baseline"] == "uniform"
    assert other["seeds"] == 3 and other["final_difference"]["seeds"] == 2
    assert other["final_difference"]["mean"] == pytest.approx(0.0)
    assert other["final_difference"]["sd"] == pytest.approx(math.sqrt(0.02))
    # seed 0 passes 0.5 at three quarters of the way, seed 1 never comes to 0.9
    assert other["to_baseline"] == {"reached": 1, "of": 2, "median_share": None}
    assert other["dead_prompt_share"] == 0.5 and other["trained_rollouts"] == 50


def test_rows_over_all_tasks_average_within_a_seed() -> None:
    runs = []
    for task, gain in (("chains", 0.1), ("sort", -0.04)):
        for seed in (0, 1):
            runs += [
                result("uniform", seed, [0.2, 0.5], task),
                result("min_variance", seed, [0.2, 0.5 + gain + seed / 100], task),
            ]
    runs.append(result("min_variance", 2, [0.2, 0.9], "sort"))
    whole = [row for row in summarise(runs) if row["task"] == ALL]
    assert [row["arm"] for row in whole] == ["min_variance"]
    assert whole[0]["final_difference"]["mean"] == pytest.approx(0.035)
    assert whole[0]["seeds"] == 2


def test_each_loss_is_compared_with_uniform_under_that_loss() -> None:
    arms = ["uniform", "min_variance", "uniform@loss=dapo", "min_variance@waves=2@loss=dapo"]
    assert [baseline_of(arm, arms) for arm in arms] == ["uniform", "uniform", "uniform@loss=dapo", "uniform@loss=dapo"]
    assert baseline_of("min_variance@loss=dr_grpo", arms) == "uniform"
    # published methods bring their loss
    published = ["dapo", "codapo", "preset.hora", "vip_dr_grpo", "dapo@loss=grpo"]
    rivals = ["uniform@loss=dapo", "uniform@loss=dapo", "uniform", "uniform", "uniform"]
    assert [baseline_of(arm, arms) for arm in published] == rivals
    assert baseline_of("b", ["a", "b"]) == "a"


def test_a_brief_result_keeps_means_and_the_curve() -> None:
    short = brief(result("uniform", 0, [0.2, 0.5]))
    assert short["metrics"]["max_n"] == 0.5
    assert short["curve"][1] == {"rollouts": 100, "sampled": 0.5, "greedy": 0.6}


def test_an_unknown_baseline_and_no_results_are_errors() -> None:
    with pytest.raises(RollwiseError, match="baseline: no arm 'unifrm'; did you mean 'uniform'"):
        summarise([result("uniform", 0, [0.2, 0.5])], "unifrm")
    with pytest.raises(RollwiseError, match="results: none"):
        summarise([])
