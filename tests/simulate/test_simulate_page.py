"""The simulator's page: its example prints what it says, and its commands run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rollwise.cli.app import status_of

PAGE = Path(__file__).parents[2] / "docs" / "simulate.md"


def test_the_example_prints_what_the_page_says(capsys):
    ((code, printed),) = re.findall(r"```python\n(.*?)```\n\nIt prints\n\n```text\n(.*?)```", PAGE.read_text(), re.S)
    exec(compile(code, PAGE.name, "exec"), {})
    assert capsys.readouterr().out == printed


def test_the_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.S)
    small = {"simulate": ["--steps", "2", "--seeds", "1", "--workers", "1"], "allocation": ["--steps", "2"]}
    for line in block.splitlines():
        arguments = line.split()[1:]
        extra = small.get(arguments[0], small.get(arguments[1], []) if len(arguments) > 1 else [])
        assert status_of([*arguments, *extra]) == 0
        assert capsys.readouterr().out
    assert (tmp_path / "rates.png").exists()


@pytest.mark.parametrize(
    "word", ["dead_prompt_share", "tokens_generated", "ideal_informative", "sum_squared_advantage"]
)
def test_the_page_names_what_is_measured(word):
    from rollwise.simulate.methods import parse_method
    from rollwise.simulate.runner import Setting, run_arm

    row = run_arm(Setting(prompts=2, budget=8, steps=1), parse_method("uniform"), 0)
    assert word in row["means"] and word in PAGE.read_text()
