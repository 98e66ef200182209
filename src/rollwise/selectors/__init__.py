"""Rules for which prompts of the data set enter a step."""

from __future__ import annotations

from rollwise.selectors.base import Selector

__all__ = ["Selector"]
