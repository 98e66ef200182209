"""Conformance checks for levers of one's own; every rule of rollwise passes them too.

    from rollwise.testing import check_allocator

    def test_my_rule_keeps_the_contract():
        check_allocator(MyRule())

Each check plays the lever through many small situations and raises `AssertionError` that names the first broken promise and
the situation it was broken in. Deterministic for a seed; a few seconds at most.
"""

from __future__ import annotations

from rollwise.testing.advantages import check_advantage
from rollwise.testing.allocators import check_allocator
from rollwise.testing.curators import check_curator
from rollwise.testing.selectors import check_selector

__all__ = ["check_advantage", "check_allocator", "check_curator", "check_selector"]
