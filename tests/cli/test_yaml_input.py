"""YAML is read in bounded time, and what is wrong with it is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollwise.cli.config import read_config
from rollwise.cli.values import check_finite, short
from rollwise.cli.yaml_input import MOST_CHARACTERS, load_yaml
from rollwise.types import RollwiseError

NAMES = "abcdefghi"


def bomb(opening: str, link: str) -> str:
    """Nine lines, each of which holds the one before nine times: 9^9 values when written out."""
    lines = [f"a: &a {opening}"]
    for before, name in zip(NAMES, NAMES[1:], strict=False):
        lines.append(f"{name}: &{name} " + link.format(",".join([f"*{before}"] * 9)))
    return "\n".join(lines) + "\n"


def fault(text: str) -> str:
    with pytest.raises(RollwiseError) as caught:
        load_yaml(text, "here")
    assert "\n" not in str(caught.value) and str(caught.value).startswith("here")
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [bomb("[x, x]", "[{}]"), bomb("{k: 1}", "{{<<: [{}]}}"), "a: &a [1, *a]\n"],
    ids=["lists", "merges", "itself"],
)
def test_references_that_stand_for_too_much_are_refused(text: str) -> None:
    assert "its references (*name) stand for more than 100,000 values" in fault(text)


def test_a_bomb_in_a_run_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("data: {source: chains}\n" + bomb("[x, x]", "[{}]") + "steps: *i\n")
    with pytest.raises(RollwiseError, match="stand for more than"):
        read_config(path, {})


def test_references_within_reason_are_followed() -> None:
    assert load_yaml("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: *a\n", "here") == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 3, "y": 2},
        "c": {"x": 1, "y": 2},
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("steps: 1\nsteps: 2\n", "here line 2: not valid YAML ('steps' is set twice)"),
        ("method: {waves: 2, waves: 3}\n", "here line 1: not valid YAML ('waves' is set twice)"),
        ("a: 2026-99-99\n", "quote what is text"),
        ("a: " + "9" * 9000 + "\n", "here: not valid YAML"),
        ("a: !!bool perhaps\n", "here: not valid YAML"),
        ('a: "\\ud800"\n', "half of a surrogate pair"),
        ("[" * 2000, "nested too deeply"),
        ("[" * 50 + "]" * 50, "nested too deeply"),
        ("a: !!python/object/apply:os.system [exit]\n", "could not determine a constructor"),
        ("a: \x01\n", "special characters are not allowed"),
        ("a: *b\n", "found undefined alias 'b'"),
        ("? [1]\n: 2\n", "found unhashable key"),
        ("--- 1\n--- 2\n", "found another document"),
        ("#" * (MOST_CHARACTERS + 1), "a configuration has at most"),
    ],
)
def test_what_cannot_be_read_is_one_line(text: str, line: str) -> None:
    assert line in fault(text)


def test_an_empty_document_is_none() -> None:
    assert load_yaml("# nothing\n", "here") is None


def test_values_are_shown_in_short() -> None:
    value: object = "x" * 10_000
    for _ in range(60):  # 2^60 values, were they written out
        value = [value, value]
    assert len(short(value)) < 1500
    assert short(3) == "3" and short("a\nb") == "'a\\nb'"
    assert short(1 << 100_000) == "a number too long to show"


def test_numbers_that_are_none_are_found_at_any_depth() -> None:
    check_finite({"a": [1, 2.5, "inf", None]}, "trainer")
    with pytest.raises(RollwiseError, match=r"^trainer\.a\.1: nan; give a finite number$"):
        check_finite({"a": [1, float("nan")]}, "trainer")
