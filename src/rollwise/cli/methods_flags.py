"""The flags of `rollwise methods`."""

from __future__ import annotations

from rollwise.cli.output import AsJson, show


def methods(as_json: AsJson = False) -> None:
    """The published methods by name, the levers they stand for, and how levers are mixed."""
    from rollwise.cli import methods as command

    show(command.lines(), command.run(), as_json)
