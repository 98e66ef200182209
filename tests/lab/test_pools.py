"""Pools: distinct, even over classes, never overlapping what is held out."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.lab.pools import draw_batch, draw_problems, held_out, skew_pool
from rollwise.lab.tasks import TASKS, get_task
from rollwise.types import RollwiseError


@pytest.mark.parametrize("name", TASKS)
def test_a_pool_is_distinct_even_and_apart_from_the_evaluation_set(name: str) -> None:
    task, rng = get_task(name), np.random.default_rng(0)
    pool, held = draw_problems(task, 500, rng), draw_problems(task, 500, rng, evaluation=True)
    for problems in (pool, held):
        assert len(set(problems.ids)) == len(problems) == 500
        sizes = np.bincount(problems.classes)
        assert len(sizes) == len(task.classes) and sizes.max() - sizes.min() <= 1
    assert not set(pool.ids) & set(held.ids)
    assert not held_out(pool.prompts).any() and held_out(held.prompts).all()


def test_warm_up_batches_hold_no_evaluation_problem_and_one_in_five_is_held_out() -> None:
    task, rng = get_task("division"), np.random.default_rng(0)
    prompts, answers = draw_batch(task, 5000, rng)
    assert len(prompts) == len(answers)
    assert not held_out(prompts).any()
    assert 0.76 < len(prompts) / (5000 // 18 * 18) < 0.84


def test_the_same_generator_state_gives_the_same_pool() -> None:
    task = get_task("brackets")
    first, second = (draw_problems(task, 60, np.random.default_rng(7)) for _ in range(2))
    assert first.ids == second.ids and (first.answers == second.answers).all()


def test_a_class_with_too_few_problems_says_how_many_there_are() -> None:
    with pytest.raises(
        RollwiseError, match=r"pool_size: 40000 problems, but class up-3 of sort has \d+; give at most"
    ):
        draw_problems(get_task("sort"), 40000, np.random.default_rng(0))


def test_a_skewed_pool_is_mostly_easy_or_hopeless() -> None:
    rng = np.random.default_rng(0)
    rates = rng.random(2000) ** 3
    rates[:400] = 1.0
    chosen = rates[skew_pool(rates, 200, rng)]
    assert len(chosen) == 200
    assert (chosen >= 0.95).sum() == 120
    assert (chosen <= 0.02).sum() == 60
    assert ((chosen >= 0.2) & (chosen <= 0.8)).sum() == 20


def test_a_skewed_pool_takes_the_nearest_where_extremes_are_missing() -> None:
    rates = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.1, 0.2, 0.3, 0.4, 0.55])
    chosen = np.sort(rates[skew_pool(rates, 10, np.random.default_rng(0))])
    assert chosen.tolist() == sorted(rates.tolist())
    few = rates[skew_pool(rates, 2, np.random.default_rng(0), easy=0.5, hard=0.5)]
    assert sorted(few.tolist()) == [0.1, 0.9]
