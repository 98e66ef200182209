"""Names of the groups that copies of a prompt form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rollwise.types import RollwiseError


def name_groups(prompt_ids: Sequence[str]) -> tuple[str, ...]:
    """A group id for every copy of a prompt: the prompt's id for the first, `id~2` for the second and so on.

    Raises:
        RollwiseError: if a prompt is called what a copy would be.
    """
    seen: Counter[str] = Counter()
    names = []
    for key in prompt_ids:
        seen[key] += 1
        names.append(key if seen[key] == 1 else f"{key}~{seen[key]}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RollwiseError(f"prompt_ids: {twice!r} is a prompt and would name another one's copy; rename the prompt")
    return tuple(names)
