"""Rules for which rollouts train, and with what weight."""

from __future__ import annotations

from rollwise.curators.base import Curated, Curator, keep_all

__all__ = ["Curated", "Curator", "keep_all"]
