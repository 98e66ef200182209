"""The metrics of an arm are read back line by line; a damaged line is named, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollwise.cli.metrics_file import forget_after, read_metrics
from rollwise.types import RollwiseError


def test_rows_after_a_step_and_a_line_that_was_cut_short_are_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 9}\n{"step": 10, "seconds": 2.5}\n{"step": 11, "seconds": 3}\n{"step": 1')
    assert [row["step"] for row in read_metrics(path)] == [9, 10, 11]
    assert forget_after(path, 10) == 2.5  # seconds trained until there
    assert path.read_text() == '{"step": 9}\n{"step": 10, "seconds": 2.5}\n'
    assert [found.name for found in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_where_there_are_none_none_are_made(tmp_path: Path) -> None:
    assert forget_after(tmp_path / "metrics.jsonl", 3) == 0.0
    assert read_metrics(tmp_path / "metrics.jsonl") == [] and not list(tmp_path.iterdir())


@pytest.mark.parametrize("line", ["{", '{"a": 1}', "[1]", '{"step": "2"}', "\x00", "[" * 100_000, ""])
def test_a_damaged_line_is_named_and_nothing_is_taken_away(tmp_path: Path, line: str) -> None:
    path = tmp_path / "metrics.jsonl"
    text = '{"step": 1}\n' + line + '\n{"step": 3}\n'
    path.write_text(text)
    with pytest.raises(RollwiseError) as caught:
        forget_after(path, 1)
    assert str(caught.value) == f"metrics: {path} line 2 is damaged; delete that line to go on without it"
    assert path.read_text() == text
