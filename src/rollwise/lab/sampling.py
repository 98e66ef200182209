"""Playing a step with a model: generate, grade and report, wave by wave."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rollwise.allocators import Allocator
from rollwise.lab.gradients import embedding_norms
from rollwise.lab.model import Completions, Prefix, TinyLM
from rollwise.lab.pools import Problems
from rollwise.lab.tasks import Task
from rollwise.step import Step
from rollwise.types import IntArray

AHEAD = 8
"""Rollouts of a prompt that are generated together where waves of single rollouts follow."""

Generate = Callable[[IntArray, IntArray, IntArray], Completions]
"""(B,) counts and, for each rollout in order of prompts, (n,) its prompt and which of that prompt's it is."""


class Means:
    """How a rule's steps are to be played.

    `needs` are the words of `rollwise.allocators.Allocator.needs`, and "answer" with `votes`; gradient norms are reported
    for waves that another may follow. `singly` says that the rule asks for one rollout at a time, which are then generated
    ahead of it (`LookAhead`). `usual` is the rollouts of a step, whatever this one's are.
    """

    def __init__(self, rule: Allocator, usual: int, votes: bool = False) -> None:
        self.needs = frozenset(getattr(rule, "needs", ())) | ({"answer"} if votes else frozenset())
        self.singly = bool(getattr(rule, "sequential", False))
        self.usual = usual


def play_step(
    model: TinyLM,
    task: Task,
    step: Step,
    problems: Problems,
    budget: int,
    seed: int,
    means: Means,
) -> tuple[Completions, float]:
    """The step's completions in order of issue, and the processor seconds of generating them.

    A prompt's k-th rollout has the same noise whichever arm asks for it, and in whichever wave.
    """
    size, longest = len(problems), task.answer_tokens
    generator = torch.Generator().manual_seed(seed * 100_003 + step.index)
    # what a step wider than usual adds comes after, so that the rollouts of the usual one are the same
    columns = [min(means.usual, budget - first) for first in range(0, budget, means.usual)]
    noise = torch.cat([torch.rand(size, width, longest, generator=generator) for width in columns], 1)
    with torch.no_grad():
        prefix = model.prefill(torch.as_tensor(problems.prompts))

    def generate(counts: IntArray, slots: IntArray, places: IntArray) -> Completions:
        return model.generate(prefix, torch.as_tensor(counts), noise[slots, places])

    drawn: Generate = LookAhead(model, prefix, noise) if means.singly else generate
    waves: list[Completions] = []
    paid, seconds = np.zeros(size, dtype=np.int64), 0.0
    while wave := step.next_wave():
        slots = np.repeat(np.arange(size), wave.counts)
        places = np.arange(len(slots)) - np.repeat(np.cumsum(wave.counts) - wave.counts, wave.counts) + paid[slots]
        began = time.process_time()
        made = drawn(wave.counts, slots, places)
        seconds += time.process_time() - began
        right = task.grade(made.tokens.numpy(), problems.answers[slots])
        answers = task.answers(made.tokens.numpy()) if "answer" in means.needs else [None] * len(slots)
        norms: list[float | None] = [None] * len(slots)
        if "gradient_norm" in means.needs and paid.sum() + len(slots) < budget:
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


class LookAhead:
    """Rollouts generated several at a time for a rule that asks for them one by one; those never asked for are dropped.

    Their noise is settled beforehand, so they come out as if generated when asked for, and none is paid for before. A
    trainer has no such means: what one at a time costs there is not to be read from the seconds here.
    """

    def __init__(self, model: TinyLM, prefix: Prefix, noise: Tensor) -> None:
        """`noise` [B, N, T] is that of every rollout the step may ask for."""
        self._model, self._prefix, self._noise = model, prefix, noise
        self._ready = np.zeros(len(noise), dtype=np.int64)
        self._tokens = torch.zeros(noise.shape, dtype=torch.long)
        self._logprobs, self._lengths = torch.zeros(noise.shape), torch.zeros(noise.shape[:2], dtype=torch.long)

    def __call__(self, counts: IntArray, slots: IntArray, places: IntArray) -> Completions:
        """The rollouts at those places (n,) of those prompts (n,)."""
        wanted = np.zeros_like(self._ready)
        np.maximum.at(wanted, slots, places + 1)
        short = wanted > self._ready
        if short.any():
            # the first time all prompts, since most will be asked for
            more = np.where(short | (self._ready == 0), np.maximum(wanted - self._ready, AHEAD), 0)
            self._draw(np.minimum(more, self._noise.shape[1] - self._ready))
        return Completions(self._tokens[slots, places], self._logprobs[slots, places], self._lengths[slots, places])

    def _draw(self, more: IntArray) -> None:
        slots = np.repeat(np.arange(len(more)), more)
        places = np.arange(len(slots)) - np.repeat(np.cumsum(more) - more, more) + self._ready[slots]
        made = self._model.generate(self._prefix, torch.as_tensor(more), self._noise[slots, places])
        self._tokens[slots, places], self._logprobs[slots, places] = made.tokens, made.logprobs
        self._lengths[slots, places] = made.lengths
        self._ready += more
