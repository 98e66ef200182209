"""The example in docs/solver.md runs and prints what the page says."""

from __future__ import annotations

import re


def test_the_example_prints_what_the_page_says(repository, capsys):
    page = (repository / "docs" / "solver.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.S)
    printed = re.search(r"It prints\n\n```text\n(.*?)```", page, re.S)
    exec(compile(code[1], "docs/solver.md", "exec"), {})
    assert capsys.readouterr().out == printed[1]
