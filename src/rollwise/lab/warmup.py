"""Supervised warm-up to a given accuracy: the starting point that all arms of a seed share, kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from rollwise.lab.measure import measure_accuracy, success_rates
from rollwise.lab.model import PAD, TinyLM, get_size
from rollwise.lab.pools import Problems, draw_batch, draw_candidates, draw_problems, skew_pool
from rollwise.lab.state import check_writable, read_state, take_up, write_state
from rollwise.lab.tasks import Task, get_task
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

POOLS = ("even", "skewed")
"""`even`: as many problems of each class. `skewed`: 60 % easy, 30 % very hard and 10 % middling for the warm model."""

CACHE = "ROLLWISE_LAB_CACHE"
"""The variable that says where checkpoints are kept."""

PROBE_EVERY = 10
CANDIDATES = 4096
"""Problems a skewed pool is chosen from."""


@dataclass(frozen=True)
class Warmup:
    """Settings of the warm-up; a checkpoint is kept per different setting.

    `target` is the accuracy at temperature 1 at which it stops; within `limit` steps of `batch` problems or not at all.
    """

    task: str = "chains"
    seed: int = 0
    size: str = "tiny"
    target: float = 0.4
    limit: int = 3000
    batch: int = 256
    lr: float = 2e-3
    pool: str = "even"
    pool_size: int = 1024

    def __post_init__(self) -> None:
        get_size(self.size)
        if not 0 < self.target < 1:
            raise RollwiseError(f"target: accuracy {self.target}; give a number between 0 and 1, such as 0.4")
        if self.pool not in POOLS:
            raise RollwiseError(f"pool: no {self.pool!r}; {nearest(self.pool, POOLS)}")
        if not 1 <= self.pool_size <= CANDIDATES // 2:
            raise RollwiseError(f"pool_size: {self.pool_size} problems; give 1 to {CANDIDATES // 2}, such as 1024")


@dataclass(frozen=True)
class Start:
    """What every arm of a seed starts from: the warm model's weights, and the pool of training problems."""

    weights: dict[str, torch.Tensor]
    pool: Problems
    steps: int
    accuracy: float


def cache_folder() -> Path:
    """ROLLWISE_LAB_CACHE, or runs/lab/cache."""
    return Path(os.environ.get(CACHE, "runs/lab/cache"))


def build_model(task: Task, size: str) -> TinyLM:
    """An untrained model for the task; initialised from torch's global generator."""
    return TinyLM(get_size(size), len(task.words), task.prompt_tokens + task.answer_tokens)


def prepare_start(settings: Warmup, cache: str | Path | None = None, report: Callable[[str], None] = print) -> Start:
    """The start of that task and seed: read from the cache, or trained and put there.

    Raises:
        RollwiseError: if the target is not reached within the limit, or a setting is unknown.
    """
    task = get_task(settings.task)
    key = hashlib.blake2b(json.dumps(asdict(settings), sort_keys=True).encode(), digest_size=5).hexdigest()
    path = Path(cache or cache_folder()) / f"{settings.task}-{settings.size}-seed{settings.seed}-{key}.pt"
    if found := take_up(path, lambda path: read_start(path, task, settings.size), CACHE):
        return found
    check_writable(path.parent, CACHE)
    weights, steps = train_supervised(task, settings, report)
    pool = build_pool(task, settings, weights)
    write_state(path, {"weights": weights, "pool": vars(pool), "steps": steps}, CACHE)
    return read_start(path, task, settings.size)


def read_start(path: Path, task: Task, size: str) -> Start:
    """The start that a checkpoint holds, its model's accuracy measured."""
    state = read_state(path)
    accuracy = measure_accuracy(load_model(task, size, state["weights"]), task, evaluation_set(task)).sampled
    return Start(state["weights"], Problems(**state["pool"]), state["steps"], accuracy)


def train_supervised(
    task: Task, settings: Warmup, report: Callable[[str], None] = print
) -> tuple[dict[str, torch.Tensor], int]:
    """Weights after the warm-up, and the steps it took: AdamW on the right answers, until the accuracy on a probe of 512
    training problems reaches the target.

    Raises:
        RollwiseError: if it does not within the limit.
    """
    rng = np.random.default_rng([settings.seed, 11])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = build_model(task, settings.size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    probe = draw_problems(task, 512, rng)
    reached = 0.0
    for step in range(1, settings.limit + 1):
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * min(1.0, step / 50)
        prompts, answers = (torch.as_tensor(part) for part in draw_batch(task, settings.batch, rng))
        logits = model.logits(prompts, answers, torch.arange(len(prompts)))
        F.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=PAD).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % PROBE_EVERY == 0:
            reached = measure_accuracy(model, task, probe).sampled
            if step % 100 == 0:
                report(f"warm-up {task.name} seed {settings.seed}: step {step}, accuracy {reached:.3f}")
            if reached >= settings.target:
                return {name: weight.detach().clone() for name, weight in model.state_dict().items()}, step
    raise RollwiseError(
        f"target: {task.name} reached accuracy {reached:.3f} in {settings.limit} steps, not {settings.target}; "
        "raise limit or lower target"
    )


def build_pool(task: Task, settings: Warmup, weights: dict[str, torch.Tensor]) -> Problems:
    """The seed's training problems, of the kind `settings.pool`."""
    rng = np.random.default_rng([settings.seed, 12])
    if settings.pool == "even":
        return draw_problems(task, settings.pool_size, rng)
    candidates = draw_candidates(task, CANDIDATES, rng)
    rates = success_rates(load_model(task, settings.size, weights), task, candidates, seed=settings.seed)
    return candidates.take(skew_pool(rates, settings.pool_size, rng))


@lru_cache(maxsize=8)
def evaluation_set(task: Task, size: int = 1024) -> Problems:
    """Held-out problems, the same for every seed and arm."""
    return draw_problems(task, size, np.random.default_rng(1), evaluation=True)


def load_model(task: Task, size: str, weights: dict[str, torch.Tensor]) -> TinyLM:
    """A model with those weights."""
    model = build_model(task, size)
    model.load_state_dict(weights)
    return model
