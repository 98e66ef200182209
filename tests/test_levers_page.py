"""The page on levers of one's own: its rule is found by its address and passes the check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rollwise.simulate.methods import parse_method


def test_the_rule_of_the_page_keeps_the_contract(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (repository / "docs" / "levers.md").read_text(encoding="utf-8")
    module, use = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "my_rules.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    exec(compile(use, "docs/levers.md", "exec"), {})
    assert parse_method("my_rules:Halves@share=0.25").build().share == 0.25  # type: ignore[attr-defined]
