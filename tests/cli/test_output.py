from __future__ import annotations

import pytest
from rich.table import Table

from rollwise.cli.output import show_tables


def test_a_table_that_goes_to_a_file_keeps_every_cell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    table = Table()
    cells = [f"column-{number}-0.12345" for number in range(8)]
    for cell in cells:
        table.add_column(cell)
    table.add_row(*reversed(cells))
    show_tables(table)
    header, row = (line for line in capsys.readouterr().out.splitlines() if "column" in line)
    assert all(cell in header and cell in row for cell in cells)
