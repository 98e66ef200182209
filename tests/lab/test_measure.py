"""Success rates and accuracy: the likelihood of the right answer is what sampling and decoding find."""

from __future__ import annotations

import numpy as np
import torch

from rollwise.lab.measure import measure_accuracy, success_rates
from rollwise.lab.pools import draw_problems
from rollwise.lab.tasks import get_task
from rollwise.lab.warmup import Start, build_model, load_model

SAMPLES = 64


def test_the_rate_of_a_strict_task_is_what_sampling_estimates(start: Start) -> None:
    task = get_task("sort")
    model = load_model(task, "tiny", start.weights)
    rates = success_rates(model, task, start.pool)
    noise = torch.rand(SAMPLES * len(rates), task.answer_tokens, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        made = model.generate(
            model.prefill(torch.as_tensor(start.pool.prompts)), torch.full((len(rates),), SAMPLES), noise
        )
    right = task.grade(made.tokens.numpy(), np.repeat(start.pool.answers, SAMPLES, axis=0))
    counts = right.reshape(-1, SAMPLES).sum(axis=1)
    variance = SAMPLES * rates * (1 - rates)
    assert 0.02 < rates.mean() < 0.6
    assert abs((counts - SAMPLES * rates).sum()) < 4 * np.sqrt(variance.sum())
    assert (np.abs(counts - SAMPLES * rates) < 5 * np.sqrt(variance) + 2).all()


def test_greedy_accuracy_of_a_strict_task_is_that_of_decoding(start: Start) -> None:
    task = get_task("sort")
    model = load_model(task, "tiny", start.weights)
    found = measure_accuracy(model, task, start.pool)
    with torch.no_grad():
        prefix = model.prefill(torch.as_tensor(start.pool.prompts))
        made = model.generate(prefix, torch.ones(len(start.pool), dtype=torch.long), None)
    assert found.greedy == task.grade(made.tokens.numpy(), start.pool.answers).mean()
    assert 0 < found.greedy < 1


def test_accuracy_by_class_averages_to_the_whole(start: Start) -> None:
    task = get_task("sort")
    found = measure_accuracy(load_model(task, "tiny", start.weights), task, start.pool)
    sizes = np.bincount(start.pool.classes, minlength=len(task.classes))
    assert np.isclose((found.by_class * sizes).sum() / sizes.sum(), found.sampled)


def test_rates_of_a_final_task_come_from_samples_and_repeat_by_seed() -> None:
    task = get_task("chains-final")

    torch.manual_seed(0)
    model = build_model(task, "tiny")
    problems = draw_problems(task, 64, np.random.default_rng(0))
    first, again, other = (success_rates(model, task, problems, seed=seed, samples=16) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()
    assert set((first * 16) % 1) == {0.0}
