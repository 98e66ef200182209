"""A decoder-only transformer small enough to learn by rewards in seconds on one core: all of it is in this file.

Letters of shapes: B prompts, n rollouts, P prompt tokens, T completion tokens, H heads, D width of a head, V words.
All prompts of a task have P tokens, so nothing is padded on the left. A prompt is encoded once, however many rollouts it
has, in generation and in training alike; `rows` (n,) says which prompt a rollout belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rollwise.suggest import nearest
from rollwise.types import RollwiseError

PAD, END = 0, 1
"""Token ids every vocabulary starts with: nothing (after the end), and the end of a completion."""

KEPT = 0.8
"""Share of unfinished rows at which the finished ones leave the batch; each time all caches are copied."""

Cache = tuple[Tensor, Tensor]
"""Keys and values of one layer, [., H, length, D] each."""


@dataclass(frozen=True)
class Size:
    """Width of the residual stream, number of layers and heads."""

    width: int
    layers: int
    heads: int


SIZES = {"tiny": Size(64, 2, 4), "small": Size(128, 4, 4)}
"""About 0.1 and 0.8 million parameters."""


def get_size(name: str) -> Size:
    """The size of that name.

    Raises:
        RollwiseError: for an unknown name.
    """
    if name not in SIZES:
        raise RollwiseError(f"size: no {name!r}; {nearest(name, SIZES)}")
    return SIZES[name]


@dataclass(frozen=True)
class Prefix:
    """Prompts encoded once: logits [B, V] of the first completion token, their caches, and P."""

    logits: Tensor
    caches: list[Cache]
    length: int


@dataclass(frozen=True)
class Completions:
    """What `generate` made: tokens [n, T] (PAD after END), their log-probabilities [n, T] (0 after END), lengths [n]."""

    tokens: Tensor
    logprobs: Tensor
    lengths: Tensor


class Block(nn.Module):
    """Attention and a two-layer network, each behind a normalisation and added to the stream."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.norm_in = nn.LayerNorm(size.width)
        self.qkv = nn.Linear(size.width, 3 * size.width, bias=False)
        self.out = nn.Linear(size.width, size.width, bias=False)
        self.norm_mid = nn.LayerNorm(size.width)
        self.up = nn.Linear(size.width, 4 * size.width)
        self.down = nn.Linear(4 * size.width, size.width)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [., H, S, D] of x [., S, width]."""
        rows, length, width = x.shape
        split = self.qkv(self.norm_in(x)).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        return query, key, value

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """The stream after the block: attended [., H, S, D] is mixed in, then the network's output."""
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.relu(self.up(self.norm_mid(x))))


class TinyLM(nn.Module):
    """The language model: token and position embeddings, blocks, one head over the vocabulary."""

    def __init__(self, size: Size, vocabulary: int, length: int) -> None:
        """`length` is P + T, the longest sequence."""
        super().__init__()
        self.embed = nn.Embedding(vocabulary, size.width)
        self.place = nn.Embedding(length, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, vocabulary, bias=False)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                # what is added to the stream 2 * layers times starts smaller, so that the sum starts near 1
                shrink = (2 * size.layers) ** -0.5 if name.endswith(("out.weight", "down.weight")) else 1.0
                nn.init.normal_(weight, std=shrink * (0.1 if "embed" in name or "place" in name else size.width**-0.5))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [B, S, V] of whole sequences [B, S]: the plain pass, which the two below must agree with."""
        stream, _ = self._encode(tokens)
        return self.head(self.norm(stream))

    def prefill(self, prompts: Tensor) -> Prefix:
        """Encode prompts [B, P]."""
        stream, caches = self._encode(prompts)
        return Prefix(self.head(self.norm(stream[:, -1])), caches, prompts.shape[1])

    @torch.no_grad()
    def represent(self, prompts: Tensor) -> Tensor:
        """[B, width] mean over places of the last layer's normalised stream, of prompts [B, P]."""
        return self.norm(self._encode(prompts)[0]).mean(1)

    def logits(self, prompts: Tensor, completions: Tensor, rows: Tensor) -> Tensor:
        """Logits [n, T, V] that predict completions [n, T], completion j after prompt `rows[j]` of [B, P]."""
        prefix = self.prefill(prompts)
        first, new = prefix.logits[rows][:, None], completions.shape[1] - 1
        if new == 0:
            return first
        stream = self.embed(completions[:, :-1]) + self.place.weight[prefix.length : prefix.length + new]
        sees = torch.ones(new, prefix.length + new, dtype=torch.bool).tril(prefix.length)
        for block, (keys, values) in zip(self.blocks, prefix.caches, strict=True):
            query, key, value = block.project(stream)
            key, value = torch.cat([keys[rows], key], 2), torch.cat([values[rows], value], 2)
            stream = block.finish(stream, F.scaled_dot_product_attention(query, key, value, attn_mask=sees))
        return torch.cat([first, self.head(self.norm(stream))], 1)

    def logprobs(self, prompts: Tensor, completions: Tensor, rows: Tensor) -> Tensor:
        """Log-probabilities [n, T] of completions [n, T]; arguments as for `logits`."""
        return self.logits(prompts, completions, rows).log_softmax(-1).gather(2, completions[:, :, None])[:, :, 0]

    @torch.no_grad()
    def generate(self, prefix: Prefix, counts: Tensor, noise: Tensor | None) -> Completions:
        """Complete prompt i of the prefix `counts[i]` times; rollouts come in order of their prompts.

        `noise` [n, T] is uniform on [0, 1), one number a token (inverse transform sampling), so a rollout depends on its
        own noise only and not on what else is in the batch; None decodes greedily, as far as the position table reaches.
        """
        rows = torch.repeat_interleave(torch.arange(len(counts)), counts)
        steps = noise.shape[1] if noise is not None else self.place.num_embeddings - prefix.length
        caches = [(_extend(keys, rows, steps), _extend(values, rows, steps)) for keys, values in prefix.caches]
        tokens, scores = torch.full((len(rows), steps), PAD), torch.zeros(len(rows), steps)
        lengths = torch.zeros(len(rows), dtype=torch.long)
        logits = prefix.logits[rows]
        held, going = torch.arange(len(rows)), torch.ones(len(rows), dtype=torch.bool)
        for step in range(steps):
            logprobs = logits.log_softmax(-1)
            chosen = logits.argmax(-1) if noise is None else _invert(logprobs, noise[held, step])
            tokens[held, step] = torch.where(going, chosen, PAD)
            scores[held, step] = torch.where(going, logprobs.gather(1, chosen[:, None])[:, 0], 0.0)
            lengths[held] += going
            going &= chosen != END
            left = int(going.sum())
            if step + 1 == steps or not left:
                break
            if left <= KEPT * len(going):
                caches = [(keys[going], values[going]) for keys, values in caches]
                held, going = held[going], going[going]
            logits = self._advance(tokens[held, step], prefix.length + step, caches)
        return Completions(tokens, scores, lengths)

    def _advance(self, tokens: Tensor, place: int, caches: list[Cache]) -> Tensor:
        """Logits [n, V] after tokens [n] at position `place`; the caches take their keys and values in."""
        stream = (self.embed(tokens) + self.place.weight[place])[:, None]
        for block, (keys, values) in zip(self.blocks, caches, strict=True):
            query, key, value = block.project(stream)
            keys[:, :, place], values[:, :, place] = key[:, :, 0], value[:, :, 0]
            seen = keys[:, :, : place + 1], values[:, :, : place + 1]
            stream = block.finish(stream, F.scaled_dot_product_attention(query, *seen))
        return self.head(self.norm(stream[:, 0]))

    def _encode(self, tokens: Tensor) -> tuple[Tensor, list[Cache]]:
        stream = self.embed(tokens) + self.place.weight[: tokens.shape[1]]
        caches: list[Cache] = []
        for block in self.blocks:
            query, key, value = block.project(stream)
            caches.append((key, value))
            stream = block.finish(stream, F.scaled_dot_product_attention(query, key, value, is_causal=True))
        return stream, caches


def _extend(part: Tensor, rows: Tensor, steps: int) -> Tensor:
    """[n, H, P + steps, D]: one copy of [B, H, P, D] per rollout, with room for what it generates."""
    whole = part.new_empty(len(rows), part.shape[1], part.shape[2] + steps, part.shape[3])
    whole[:, :, : part.shape[2]] = part[rows]
    return whole


def _invert(logprobs: Tensor, noise: Tensor) -> Tensor:
    """The word [n] whose interval of the cumulative distribution holds the noise [n]."""
    below = logprobs.exp().cumsum(-1)
    # a hair less than the noise, since rounding must not carry it past the last word
    return (below <= (noise * (1 - 2**-20))[:, None] * below[:, -1:]).sum(-1)
