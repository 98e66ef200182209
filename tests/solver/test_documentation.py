"""The examples in docs/solver.md run and print what the page says."""

from __future__ import annotations

import re


def test_the_examples_print_what_the_page_says(repository, capsys):
    page = (repository / "docs" / "solver.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n\nIt prints\n\n```text\n(.*?)```", page, re.S)
    assert len(examples) == page.count("```python") == 2
    for code, printed in examples:
        exec(compile(code, "docs/solver.md", "exec"), {})
        assert capsys.readouterr().out == printed
