"""The examples on the pages about beliefs and objectives run and print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rollwise.cli.app import status_of


@pytest.mark.parametrize("page", ["beliefs.md", "objectives.md"])
def test_every_example_prints_what_its_page_says(
    page: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (repository / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```\n\nIt prints\n\n```text\n(.*?)```", text, re.S)
    assert len(found) == text.count("```python")
    for code, printed in found:
        exec(compile(code, page, "exec"), {})
        assert capsys.readouterr().out == printed


def test_the_plan_commands_run(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.jsonl").write_text('{"successes": 3, "trials": 8}\n{"successes": 0, "trials": 8}\n')
    text = (repository / "docs" / "objectives.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```bash\n(.*?)```", text, re.S)
    for line in block.splitlines():
        arguments = line.split()[1:]
        if "--method" not in arguments:
            arguments += ["--method", "uniform"]  # the adaptive methods are simulated once, on the second line
        assert status_of([*arguments, "--prompts", "4", "--draws", "4"]) == 0
        assert capsys.readouterr().out
    assert (tmp_path / "plan.png").exists()
