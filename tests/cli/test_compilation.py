"""Compilation that takes long is announced, once; kernels that are compiled already are not."""

from __future__ import annotations

import numba
import pytest
from numba.core import event

from rollwise.cli.compilation import CompilationNotice


def compile_two() -> None:
    for add in (1, 2):
        assert numba.njit(lambda x, add=add: x + add)(1) == 1 + add


@pytest.mark.parametrize(("patience", "lines"), [(0.0, 1), (1e9, 0)])
def test_it_is_said_once_and_only_after_a_while(
    patience: float, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with event.install_listener("numba:compile", CompilationNotice(patience)):
        compile_two()
    assert len(capsys.readouterr().err.splitlines()) == lines


def test_nothing_is_said_where_kernels_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    double = numba.njit(lambda x: 2 * x)
    double(1)
    with event.install_listener("numba:compile", CompilationNotice(0.0)):
        assert double(2) == 4
    assert capsys.readouterr().err == ""
