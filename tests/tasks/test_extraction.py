"""Where answers stand: boxes, markers, and formulas that differ in spelling alone."""

from __future__ import annotations

import pytest

from rollwise.tasks.extraction import final_answer, last_boxed, plain_latex


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("\\boxed{2} then \\boxed{ \\frac{1}{2} }", "\\frac{1}{2}"),
        ("\\boxed{\\boxed{3}}", "3"),
        ("\\boxed{\\{1,2\\}}", "\\{1,2\\}"),
        ("\\fbox{4}", "4"),
        ("\\boxed 5", "5"),
        ("\\boxed{6} \\boxed{7", "6"),
        ("\\boxed{", None),
        ("no box", None),
    ],
)
def test_the_last_closed_box_is_found(text: str, content: str | None) -> None:
    assert last_boxed(text) == content


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("First. The answer is 5. Then: the final answer is: **6**.", "6"),
        ("Q: x\nA: 90,000\nmore", "90,000"),
        ("The answer to the question is (B)", "(B)"),
        ("Answer = 4", "4"),
        ("I can't answer that", None),
        ("answer:", None),
    ],
)
def test_what_follows_the_last_marker_is_the_answer(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\\left( 3, \\frac{\\pi}{2} \\right)", "(3,\\dfrac{\\pi}{2})"),
        ("100\\text{ square units}", "100"),
        ("120^\\circ", "120^{\\circ}"),
        ("900,\\!000", "900000"),
        ("\\frac12", "\\frac{1}{2}"),
        ("\\text{Evelyn}", "Evelyn"),
        ("\\$5", "5"),
    ],
)
def test_formulas_that_differ_in_spelling_alone_are_the_same_text(one: str, other: str) -> None:
    assert plain_latex(one) == plain_latex(other)


def test_arrows_and_what_changes_a_value_are_kept() -> None:
    assert plain_latex("\\rightarrow") == "\\rightarrow"
    assert plain_latex("1,000") != plain_latex("1000") != plain_latex("100.0")
