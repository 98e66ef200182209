"""The update of a step: rows of this step and of earlier ones, each with its advantage, through one loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rollwise.lab.losses import Loss
from rollwise.lab.model import Completions, TinyLM
from rollwise.types import FloatArray, IntArray


@dataclass(frozen=True)
class Rows:
    """Completions with their prompts [n, P], tokens [n, T], log-probabilities at generation [n, T] and lengths [n]."""

    prompts: Tensor
    tokens: Tensor
    logprobs: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, places: IntArray) -> Rows:
        """The rows at those places."""
        at = torch.as_tensor(places, dtype=torch.long)
        return Rows(self.prompts[at], self.tokens[at], self.logprobs[at], self.lengths[at])


def rows_of(prompts: IntArray, made: Completions) -> Rows:
    """Completions after prompts (n, P), row by row."""
    return Rows(torch.as_tensor(prompts), made.tokens, made.logprobs, made.lengths)


def join_rows(parts: Sequence[Rows]) -> Rows:
    """One set of several."""
    return Rows(*(torch.cat([getattr(part, name) for part in parts]) for name in ROW_PARTS))


ROW_PARTS = ("prompts", "tokens", "logprobs", "lengths")


class Payload:
    """Tokens and log-probabilities of rollouts that may train again, by rollout id."""

    def __init__(self) -> None:
        self._rows: dict[str, Rows] = {}

    def keep(self, ids: Sequence[str], rows: Rows, held: frozenset[str]) -> None:
        """Take in the rows whose ids are held, and forget all that no longer are."""
        self._rows = {key: row for key, row in self._rows.items() if key in held}
        for place, key in enumerate(ids):
            if key in held:
                self._rows[key] = rows.take(np.array([place]))

    def fetch(self, ids: Sequence[str]) -> Rows:
        """The rows of those ids."""
        return join_rows([self._rows[key] for key in ids])

    def state_dict(self) -> dict[str, Any]:
        """Ids and their rows as tensors."""
        if not self._rows:
            return {"ids": []}
        rows = self.fetch(list(self._rows))
        return {"ids": list(self._rows), **{name: getattr(rows, name) for name in ROW_PARTS}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        whole = Rows(*(state[name] for name in ROW_PARTS)) if state["ids"] else None
        self._rows = {key: whole.take(np.array([k])) for k, key in enumerate(state["ids"])} if whole else {}


def update(
    model: TinyLM,
    optimizer: torch.optim.Optimizer,
    loss: Loss,
    rows: Rows,
    advantages: FloatArray,
    *,
    longest: int,
    passes: int = 1,
) -> tuple[float, int]:
    """Ascend `passes` times on rows with advantages (n,); the gradient's norm before clipping and how many took part.

    Rows with advantage 0 count in the averages and need no pass. Without any other there is no update: one on nothing
    would still move the weights, by the optimizer's momentum.
    """
    live = np.flatnonzero(advantages)
    if not len(live):
        return 0.0, 0
    scale = loss.scale(rows.lengths, longest)[torch.as_tensor(live)]
    gain = torch.as_tensor(advantages[live], dtype=torch.float32)
    chosen = rows.take(live)
    served, place = np.unique(chosen.prompts.numpy(), axis=0, return_inverse=True)
    prompts, at = torch.as_tensor(served), torch.as_tensor(place.reshape(-1))
    width = int(chosen.lengths.max())
    tokens, old = chosen.tokens[:, :width], chosen.logprobs[:, :width]
    mask = torch.arange(width) < chosen.lengths[:, None]
    norm = 0.0
    for _ in range(passes):
        loss(model.logprobs(prompts, tokens, at), old, gain, mask, scale).backward()
        norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        optimizer.step()
        optimizer.zero_grad()
    return norm, len(live)
