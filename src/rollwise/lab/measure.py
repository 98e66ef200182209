"""How good a model is at problems: success rates, and accuracy sampled and greedy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from rollwise.lab.model import TinyLM
from rollwise.lab.pools import Problems
from rollwise.lab.tasks import Task
from rollwise.types import FloatArray, IntArray

BATCH = 2048
"""Rows per pass; more is no faster and takes more memory."""


@dataclass(frozen=True)
class Accuracy:
    """Share of problems answered rightly at temperature 1 and greedily, and the former by class (classes,)."""

    sampled: float
    greedy: float
    by_class: FloatArray


@torch.no_grad()
def success_rates(model: TinyLM, task: Task, problems: Problems, *, seed: int = 0, samples: int = 32) -> FloatArray:
    """(K,) chance that a completion at temperature 1 answers each problem.

    The likelihood of the one right answer where the task is strict, so exact; else the share of `samples` completions,
    drawn with a generator of their own. Nothing of this is charged to a run's budget.
    """
    if task.strict:
        return _likelihoods(model, problems)[0]
    return _sample(model, task, problems, seed, samples).mean(axis=1)


@torch.no_grad()
def measure_accuracy(model: TinyLM, task: Task, problems: Problems, *, seed: int = 0) -> Accuracy:
    """Accuracy on problems (K,): expected for strict tasks, else of one completion each, always the same noise."""
    if task.strict:
        sampled, greedy = _likelihoods(model, problems)
    else:
        sampled, greedy = _sample(model, task, problems, seed, 1)[:, 0], _decode(model, task, problems)
    sizes = np.bincount(problems.classes, minlength=len(task.classes))
    by_class = np.bincount(problems.classes, weights=sampled, minlength=len(task.classes)) / np.maximum(sizes, 1)
    return Accuracy(float(sampled.mean()), float(greedy.mean()), by_class)


def _likelihoods(model: TinyLM, problems: Problems) -> tuple[FloatArray, FloatArray]:
    """Chance of each right answer, and whether each of its words is the likeliest one; padding is left out."""
    chances, best = [], []
    for prompts, answers in _batches(problems.prompts, problems.answers):
        scores = model.logits(prompts, answers, torch.arange(len(prompts))).log_softmax(-1)
        beyond = answers == 0
        right = scores.gather(2, answers[:, :, None])[:, :, 0].masked_fill(beyond, 0.0)
        chances.append(right.double().sum(1).exp().numpy())
        best.append(((scores.argmax(-1) == answers) | beyond).all(1).numpy().astype(np.float64))
    return np.concatenate(chances), np.concatenate(best)


def _sample(model: TinyLM, task: Task, problems: Problems, seed: int, samples: int) -> FloatArray:
    """(K, samples) 1 where a completion is right, else 0."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    size = max(1, BATCH // samples)
    for prompts, answers in _batches(problems.prompts, problems.answers, size=size):
        noise = torch.rand(len(prompts) * samples, task.answer_tokens, generator=generator)
        made = model.generate(model.prefill(prompts), torch.full((len(prompts),), samples), noise)
        right = task.grade(made.tokens.numpy(), np.repeat(answers.numpy(), samples, axis=0))
        found.append(right.reshape(-1, samples).astype(np.float64))
    return np.concatenate(found)


def _decode(model: TinyLM, task: Task, problems: Problems) -> FloatArray:
    """(K,) 1 where the greedy completion is right, else 0."""
    found = []
    for prompts, answers in _batches(problems.prompts, problems.answers):
        made = model.generate(model.prefill(prompts), torch.ones(len(prompts), dtype=torch.long), None)
        found.append(task.grade(made.tokens.numpy(), answers.numpy()).astype(np.float64))
    return np.concatenate(found)


def _batches(*arrays: IntArray, size: int = BATCH) -> list[tuple[torch.Tensor, ...]]:
    tensors = [torch.as_tensor(array) for array in arrays]
    return list(zip(*(tensor.split(size) for tensor in tensors), strict=True))
