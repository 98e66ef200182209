"""Rules for which rollouts train, and with what weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollwise.curators.base import Curated, Curator, keep_all
from rollwise.levers import build_lever

CURATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "replay": ("rollwise.curators.replay:Replay", {}),
    "reuse": ("rollwise.curators.reuse:Reuse", {}),
    "pods": ("rollwise.curators.subsampling:PODS", {}),
    "aero": ("rollwise.curators.subsampling:AEROSubsampling", {}),
    "balanced": ("rollwise.curators.subsampling:BalancedSubsampling", {}),
    "codapo": ("rollwise.curators.confidence:ConfidenceWeights", {}),
    "dynamic": ("rollwise.curators.dynamic:DynamicSampling", {}),
    "live": ("rollwise.curators.dynamic:DynamicSampling", {"rounds": 1}),
}
"""Curators by name: their class, and the settings the name stands for."""


def get_curator(
    name: str | Curator, given: Mapping[str, Any] | None = None, /, *, updates: int = 1, **settings: Any
) -> Curator:
    """The curator of that name, of one's own by `package.module:Class`, or the object itself.

    `updates`, the optimizer updates of a step, goes to curators that take it, unless `given`, settings like the keywords,
    says otherwise.

    Raises:
        RollwiseError: an unknown name or setting, or a class that is no curator.
    """
    if not isinstance(name, str):
        return name
    found: Curator = build_lever(
        "curator", name, CURATORS, Curator, settings | dict(given or {}), {"updates": updates}
    )
    return found


__all__ = ["CURATORS", "Curated", "Curator", "get_curator", "keep_all"]
