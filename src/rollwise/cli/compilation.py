"""A line on the terminal when kernels compile, as they do once after installation: the wait is long and says nothing."""

from __future__ import annotations

import sys
import time

from numba.core import event

PATIENCE = 1.0
"""Seconds of compilation before anything is said."""


class CompilationNotice(event.Listener):
    """Says once that kernels are being compiled, where that takes longer than `patience` seconds in all."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._spent, self._since, self._depth = 0.0, 0.0, 0
        self._said = False

    def on_start(self, event: event.Event) -> None:
        """A kernel, or one that another calls, is not in the cache and is compiled now."""
        now = time.monotonic()
        if self._depth == 0:
            self._since = now
        self._depth += 1
        if not self._said and self._spent + now - self._since >= self._patience:
            self._said = True
            print("compiling the solver's kernels: once per installation, up to a minute", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        """It is compiled."""
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._since


def announce_compilation() -> None:
    """Say so once where kernels compile in this process; scripts, whose standard error is no terminal, hear nothing."""
    if sys.stderr is not None and sys.stderr.isatty():
        event.register("numba:compile", CompilationNotice())
