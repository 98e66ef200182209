"""The report of a run: one self-contained HTML page from a run folder."""

from __future__ import annotations

from pathlib import Path


def write(run_folder: Path) -> Path:
    """Write `report.html` into a run folder and return its path; works on unfinished and failed runs too.

    Raises:
        RollwiseError: if the folder is no run folder, or nothing was trained yet.
        ImportError: if matplotlib or jinja2 is not installed.
    """
    from rollwise.report.page import render
    from rollwise.report.run_data import read_run

    page = Path(run_folder) / "report.html"
    page.write_text(render(read_run(Path(run_folder))), encoding="utf-8")
    return page


__all__ = ["write"]
