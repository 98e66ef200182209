"""What a method is: a choice on each of the four levers, an objective, and options of the trainer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Settings = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """One method.

    `curators` are applied in order; the `*_settings` are keyword arguments of the levers, `curator_settings` by curator
    name. `step` holds settings of `rollwise.step.Step` and of the prior that differ from the defaults; `trainer` options
    of TRL's `GRPOConfig` as published, losses and clipping only. `carries` says what lives between steps, `source` where
    the method comes from.
    """

    name: str
    title: str
    source: str
    family: str
    allocator: str = "uniform"
    allocator_settings: Settings = field(default_factory=dict)
    selector: str | None = None
    selector_settings: Settings = field(default_factory=dict)
    curators: tuple[str, ...] = ()
    curator_settings: dict[str, Settings] = field(default_factory=dict)
    advantage: str = "grpo"
    step: Settings = field(default_factory=dict)
    trainer: Settings = field(default_factory=dict)
    carries: str = "nothing"


FAMILIES = {
    "baseline": "the same number of rollouts for every prompt",
    "estimation": "favours success rates near one half, where rewards vary most",
    "discovery": "favours low success rates, where a first success is found",
    "selection": "chooses which prompts enter a step",
    "curation": "chooses which rollouts train, or what they weigh",
    "advantage": "computes advantages otherwise",
}
"""What methods are there for, by family."""
