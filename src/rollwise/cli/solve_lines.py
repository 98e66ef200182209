"""What `rollwise solve` prints for people."""

from __future__ import annotations

from typing import Any

ABSENT = {
    "waves": "one rollout at a time",
    "value_error": "none, the value is exact",
    "gap": "none, the bound is 0",
    "gain": "none, uniform is worth 0",
}
"""What the lack of a number means."""


def lines(result: dict[str, Any]) -> list[str]:
    """The result for a terminal, one setting or number a line."""
    return [f"{key:<16} {shown(key, value)}" for key, value in result.items()]


def shown(key: str, value: Any) -> str:
    """A setting or number as a person writes it."""
    if value is None:
        return ABSENT.get(key, "none")
    if key == "prior":
        return f"Beta({value[0]:g},{value[1]:g})"
    if key in ("gain", "gap"):
        return f"{100 * value:.1f} %"
    if key == "seconds":
        return f"{value:.3f}"
    if isinstance(value, list):
        return "  ".join(f"{each:g}" for each in value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6f}" if isinstance(value, float) else str(value)
