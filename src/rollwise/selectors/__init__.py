"""Rules for which prompts of the data set enter a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollwise.levers import build_lever
from rollwise.selectors.base import Selector

SELECTORS: dict[str, tuple[str, dict[str, Any]]] = {
    "passes": ("rollwise.selectors.passes:Passes", {}),
    "cero": ("rollwise.selectors.cero:CERO", {}),
    "mopps": ("rollwise.selectors.mopps:MoPPS", {}),
    "greso": ("rollwise.selectors.greso:GRESO", {}),
    "resampling": ("rollwise.selectors.resampling:Resampling", {}),
}
"""Selectors by name: their class, and the settings the name stands for."""


def get_selector(
    name: str | Selector, given: Mapping[str, Any] | None = None, /, *, steps: int = 0, seed: int = 0, **settings: Any
) -> Selector:
    """The selector of that name, of one's own by `package.module:Class`, or the object itself.

    `steps` (the run's length in full steps) and `seed` go to selectors that take them, unless `given`, settings like the
    keywords, says otherwise.

    Raises:
        RollwiseError: an unknown name or setting, or a class that is no selector.
    """
    if not isinstance(name, str):
        return name
    found: Selector = build_lever(
        "selector", name, SELECTORS, Selector, settings | dict(given or {}), {"steps": steps, "seed": seed}
    )
    return found


__all__ = ["SELECTORS", "Selector", "get_selector"]
