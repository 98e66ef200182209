"""What a plan says of each method against uniform allocation, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LABELS = {"dead_prompt_share": "dead prompts", "informative_rollout_share": "informative rollouts"}
Z = 1.96
"""Standard errors that a 95 % interval reaches to either side."""


def verdicts(methods: Mapping[str, Mapping[str, Any]], uniform: Mapping[str, float]) -> list[str]:
    """One line for each method whose shares may differ from uniform allocation's, which are exact.

    A share is called lower or higher where its 95 % interval leaves out uniform's, else not told apart.
    """
    return [
        f"{name} against uniform: " + "; ".join(verdict(key, found, uniform[key]) for key in LABELS)
        for name, found in methods.items()
        if name != "uniform"
    ]


def verdict(key: str, found: Mapping[str, Any], even: float) -> str:
    """ "dead prompts lower (11.0% against 22.2%)" of one share."""
    share, reach = found[key], Z * found["standard_error"][key]
    word = "not told apart" if abs(share - even) <= reach else "lower" if share < even else "higher"
    return f"{LABELS[key]} {word} ({share:.1%} against {even:.1%})"
