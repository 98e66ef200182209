"""AES against hand-made numbers."""

from __future__ import annotations

import pytest

from rollwise.efficiency import efficiency_score
from rollwise.types import RollwiseError


def test_gains_and_losses_weigh_differently() -> None:
    assert efficiency_score(0.6, 80, 0.5, 100) == pytest.approx(0.2 + 3 * 0.2)
    assert efficiency_score(0.4, 80, 0.5, 100) == pytest.approx(0.2 - 5 * 0.2)
    assert efficiency_score(0.4, 120, 0.5, 100, (1, 5, 10)) == pytest.approx(-0.2 - 10 * 0.2)
    assert efficiency_score(0.5, 100, 0.5, 100) == 0


def test_needs_a_base() -> None:
    with pytest.raises(RollwiseError, match="base accuracy"):
        efficiency_score(0.5, 10, 0.0, 10)
