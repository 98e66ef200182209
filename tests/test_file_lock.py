"""The lock of a file: for one opening at a time, free again once it is closed."""

from __future__ import annotations

from pathlib import Path

from rollwise.file_lock import claim


def test_a_file_is_claimed_once_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with path.open("ab") as first, path.open("ab") as second:
        assert claim(first)
        assert claim(second) is False
    with path.open("ab") as third:
        assert claim(third)
