"""A user's function is found by its address, and what is wrong with one is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollwise.imports import load_function
from rollwise.types import RollwiseError


@pytest.fixture(autouse=True)
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_rules.py").write_text("NUMBER = 1\ndef score(completions):\n    return [1.0]\n")
    (tmp_path / "needy_rules.py").write_text("import an_absent_package\n")
    (tmp_path / "broken_rules.py").write_text("raise OSError('no disk\\nat all')\n")
    monkeypatch.chdir(tmp_path)


def test_modules_in_the_working_directory_are_found() -> None:
    assert load_function("my_rules:score", "rewards")([]) == [1.0]


def test_a_missing_module_is_said_with_the_folder_it_was_looked_for_in(tmp_path: Path) -> None:
    with pytest.raises(RollwiseError) as caught:
        load_function("my_reward:score", "rewards")
    assert "no module 'my_reward' in" in str(caught.value) and str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("my_rules:scor", "^rewards: 'my_rules' has no function 'scor'; did you mean 'score'"),
        ("my_rules:NUMBER", "^rewards: 'my_rules' has no function 'NUMBER'"),
        ("absent:score", "^rewards: 'absent:score': no module 'absent' in the working directory .*'module:function'"),
        ("absent.deep:score", "no module 'absent' in"),
        ("os.absent:score", "no module 'os.absent' in"),
        ("needy_rules:score", "^rewards: 'needy_rules:score': the module imports 'an_absent_package', which is not"),
        ("broken_rules:score", "^rewards: 'broken_rules:score': OSError: no disk; give 'module:function'"),
        (":score", "^rewards: ':score': ValueError"),
        ("my_rules:", "^rewards: 'my_rules' has no function ''"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(path: str, message: str) -> None:
    with pytest.raises(RollwiseError, match=message) as caught:
        load_function(path, "rewards")
    assert "\n" not in str(caught.value)
