"""`rollwise methods`: the published methods and the levers they stand for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rollwise.allocators import ALLOCATORS
from rollwise.curators import CURATORS
from rollwise.presets import FAMILIES, PRESETS, Method
from rollwise.selectors import SELECTORS


def run() -> dict[str, Any]:
    """Every preset with its levers and options, and the names of all levers."""
    return {
        "methods": [asdict(method) | {"curators": list(method.curators)} for method in PRESETS.values()],
        "families": FAMILIES,
        "allocators": list(ALLOCATORS),
        "selectors": list(SELECTORS),
        "curators": list(CURATORS),
    }


def lines() -> list[str]:
    """What is printed: a line per method under its family, then how levers are mixed."""
    shown = []
    width = max(map(len, PRESETS))
    for family, meaning in FAMILIES.items():
        shown.append(f"{family}: {meaning}")
        for method in PRESETS.values():
            if method.family == family:
                shown.append(f"  {method.name:<{width}}  {method.title} ({method.source})")
                shown.append(f"  {'':<{width}}  {levers(method)}")
        shown.append("")
    shown += [
        "in a run file   method: cero",
        "mixed           method: {preset: adaroll, selector: cero, curators: [replay]}",
        f"allocators      {', '.join(ALLOCATORS)}",
        f"selectors       {', '.join(SELECTORS)}",
        f"curators        {', '.join(CURATORS)}",
        "one's own       package.module:Class in the place of any name",
    ]
    return shown


def levers(method: Method) -> str:
    """The method's choice on each lever, in one line."""
    parts = [f"allocator {method.allocator}"]
    if method.selector:
        parts.append(f"selector {method.selector}")
    if method.curators:
        parts.append(f"curators {'/'.join(method.curators)}")
    parts.append(f"advantage {method.advantage}")
    parts += [f"{name} {value}" for name, value in method.step.items()]
    return ", ".join(parts)
