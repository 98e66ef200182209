"""A user's function is found by its address, and what is wrong with one is said in one line."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

from rollwise.imports import load_function
from rollwise.types import RollwiseError


@pytest.fixture(autouse=True)
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_rewards_module.py").write_text("NUMBER = 1\ndef score(completions):\n    return [1.0]\n")
    (tmp_path / "needy_rules.py").write_text("import an_absent_package\n")
    (tmp_path / "broken_rules.py").write_text("raise OSError('no disk\\nat all')\n")
    monkeypatch.chdir(tmp_path)


def test_modules_in_the_working_directory_are_found() -> None:
    assert load_function("own_rewards_module:score", "rewards")([]) == [1.0]


def test_a_missing_module_is_said_with_the_folder_it_was_looked_for_in(tmp_path: Path) -> None:
    with pytest.raises(RollwiseError) as caught:
        load_function("my_reward:score", "rewards")
    assert "no module 'my_reward' in" in str(caught.value) and str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("own_rewards_module:scor", "^rewards: 'own_rewards_module' has no function 'scor'; did you mean 'score'"),
        ("own_rewards_module:NUMBER", "^rewards: 'own_rewards_module' has no function 'NUMBER'"),
        ("absent:score", "^rewards: 'absent:score': no module 'absent' in the working directory .*'module:function'"),
        ("absent.deep:score", "no module 'absent' in"),
        ("os.absent:score", "no module 'os.absent' in"),
        ("needy_rules:score", "^rewards: 'needy_rules:score': the module imports 'an_absent_package', which is not"),
        ("broken_rules:score", "^rewards: 'broken_rules:score': OSError: no disk; give 'module:function'"),
        (":score", "^rewards: ':score': ValueError"),
        ("own_rewards_module:", "^rewards: 'own_rewards_module' has no function ''"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(path: str, message: str) -> None:
    with pytest.raises(RollwiseError, match=message) as caught:
        load_function(path, "rewards")
    assert "\n" not in str(caught.value)


def write_module(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)


def test_a_module_that_ends_the_program_while_it_is_imported_is_named(tmp_path: Path) -> None:
    write_module(tmp_path, "ending_rules", "import sys\nsys.exit(0)\n")
    with pytest.raises(RollwiseError, match="^rewards: 'ending_rules:score': the module ends the program"):
        load_function("ending_rules:score", "rewards")


def test_an_interrupt_while_a_module_is_imported_stays_one(tmp_path: Path) -> None:
    write_module(tmp_path, "stopped_rules", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load_function("stopped_rules:score", "rewards")


def test_what_a_module_prints_goes_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_module(tmp_path, "loud_rules", "print('hello')\ndef score(completions):\n    return []\n")
    load_function("loud_rules:score", "rewards")
    assert capsys.readouterr() == ("", "hello\n")


def test_a_callable_without_a_name_goes_by_its_address_and_keeps_its_signature(tmp_path: Path) -> None:
    write_module(
        tmp_path,
        "object_rules",
        "import functools\n"
        "class Judge:\n"
        "    def __call__(self, completions, answer):\n        return [1.0]\n"
        "class Slow:\n"
        "    async def __call__(self, completions):\n        return [0.5]\n"
        "def scale(completions, by):\n    return [by]\n"
        "async def wait(completions, by):\n    return [by]\n"
        "judge, slow = Judge(), Slow()\n"
        "twice, later = functools.partial(scale, by=2.0), functools.partial(wait, by=3.0)\n",
    )
    judge, twice = load_function("object_rules:judge", "rewards"), load_function("object_rules:twice", "rewards")
    assert (judge.__name__, twice.__name__) == ("judge", "twice")
    assert list(inspect.signature(judge).parameters) == ["completions", "answer"]
    assert (judge([], answer=[]), twice([])) == ([1.0], [2.0])
    for name, value in (("slow", 0.5), ("later", 3.0)):
        function = load_function(f"object_rules:{name}", "rewards")
        assert inspect.iscoroutinefunction(function) and asyncio.run(function([])) == [value]


def test_a_module_whose_own_look_up_fails_is_one_line(tmp_path: Path) -> None:
    write_module(tmp_path, "lazy_rules", "def __getattr__(name):\n    raise RuntimeError('not\\nyet')\n")
    with pytest.raises(RollwiseError, match="^rewards: 'lazy_rules:score': RuntimeError: not$"):
        load_function("lazy_rules:score", "rewards")
