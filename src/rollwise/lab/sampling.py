"""Playing a step with a model: generate, grade and report, wave by wave."""

from __future__ import annotations

import time

import numpy as np
import torch

from rollwise.lab.gradients import embedding_norms
from rollwise.lab.model import Completions, TinyLM
from rollwise.lab.pools import Problems
from rollwise.lab.tasks import Task
from rollwise.step import Step


def play_step(
    model: TinyLM,
    task: Task,
    step: Step,
    problems: Problems,
    budget: int,
    seed: int,
    needs: frozenset[str] = frozenset(),
) -> tuple[Completions, float]:
    """The step's completions in order of issue, and the processor seconds of generating them.

    A prompt's k-th rollout has the same noise whichever arm asks for it, and in whichever wave. `needs` are words of
    `rollwise.allocators.Allocator.needs`; gradient norms are reported for waves that another may follow.
    """
    size, longest = len(problems), task.answer_tokens
    generator = torch.Generator().manual_seed(seed * 100_003 + step.index)
    noise = torch.rand(size, budget, longest, generator=generator)
    with torch.no_grad():
        prefix = model.prefill(torch.as_tensor(problems.prompts))
    waves: list[Completions] = []
    paid, seconds = np.zeros(size, dtype=np.int64), 0.0
    while wave := step.next_wave():
        slots = np.repeat(np.arange(size), wave.counts)
        places = np.arange(len(slots)) - np.repeat(np.cumsum(wave.counts) - wave.counts, wave.counts) + paid[slots]
        began = time.process_time()
        made = model.generate(prefix, torch.as_tensor(wave.counts), noise[slots, places])
        seconds += time.process_time() - began
        right = task.grade(made.tokens.numpy(), problems.answers[slots])
        answers = task.answers(made.tokens.numpy()) if "answer" in needs else [None] * len(slots)
        norms: list[float | None] = [None] * len(slots)
        if "gradient_norm" in needs and paid.sum() + len(slots) < budget:
            norms = list(embedding_norms(model, torch.as_tensor(problems.prompts[slots]), made).tolist())
        rows = zip(
            wave.rollouts, right, made.lengths.tolist(), made.logprobs.sum(1).tolist(), answers, norms, strict=True
        )
        step.observe(
            *(
                rollout.result(bool(won), tokens=n, logprob=score, answer=said, gradient_norm=norm)
                for rollout, won, n, score, said, norm in rows
            )
        )
        waves.append(made)
        paid += wave.counts
    whole = (torch.cat([getattr(made, name) for made in waves]) for name in ("tokens", "logprobs", "lengths"))
    return Completions(*whole), seconds
