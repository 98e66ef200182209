"""The command line: `rollwise train | solve | report | doctor`."""

from __future__ import annotations

import importlib.util
import sys


def main() -> None:
    """Entry point of `rollwise`; says in one line what is missing when the `cli` extra is not installed."""
    missing = [name for name in ("typer", "rich", "pydantic", "yaml") if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"rollwise: {missing[0]} is not installed; the command line needs: pip install 'rollwise[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2)
    from rollwise.cli.app import run

    run(sys.argv[1:])
