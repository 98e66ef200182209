"""MS-GRPO's advantage: GRPO's, averaged over subgroups of several sizes (OpenReview ktHj6YazEE)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.advantages.by_group import apply_by_group
from rollwise.types import FloatArray, IntArray


@dataclass(frozen=True)
class MSGRPO:
    """Mean over sizes 2, 4, 8, ... and n of `(r - mean) / (std + eps)` within subgroups of that size.

    Which sizes, and how subgroups are drawn, the paper leaves open. Here the group is shuffled by `seed` and read as a
    circle, and the subgroups of size t are its n blocks of t neighbours; a rollout's advantage at size t is the mean over
    the t blocks that hold it. Every size then sums to 0 over the group, whatever n. With rewards of 0 and 1 the result is,
    on average over shuffles, GRPO's advantage times a factor that depends on the success rate and n.
    """

    seed: int = 0
    ddof: int = 1
    eps: float = 1e-4
    name: str = "ms_grpo"

    def __call__(
        self, rewards: FloatArray, group_ids: Sequence[Hashable], beliefs: FloatArray, order: IntArray
    ) -> FloatArray:
        """(n,) advantages; shapes and the treatment of unknowns as in `Advantage`."""
        return apply_by_group(self._group, rewards, group_ids, order)

    def _group(self, rewards: FloatArray) -> FloatArray:
        size = len(rewards)
        shuffle = np.random.default_rng([self.seed, size]).permutation(size)
        scales = block_sizes(size)
        found = np.zeros(size)
        for scale in scales:
            # the whole circle is one block, not n rotations of it
            starts = np.arange(size if scale < size else 1)
            blocks = shuffle[(starts[:, None] + np.arange(scale)) % size]
            inside = rewards[blocks]
            centred = inside - inside.mean(axis=1, keepdims=True)
            normed = centred / (inside.std(axis=1, ddof=self.ddof, keepdims=True) + self.eps)
            found += np.bincount(blocks.ravel(), weights=normed.ravel(), minlength=size) * size / blocks.size
        return found / len(scales)


def block_sizes(size: int) -> list[int]:
    """2, 4, 8, ... below `size`, and `size` itself."""
    return [2**k for k in range(1, size.bit_length()) if 2**k < size] + [size]
