"""Every published rule has a page that names its settings, where it comes from and what it carries."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from rollwise.advantages import ADVANTAGES
from rollwise.allocators import ALLOCATORS

OWN = ("uniform", "observe", "adaroll", "neyman")
ELSEWHERE = {"gvm_equal": "gvm"}
RULES = [name for name in ALLOCATORS if name not in OWN]
ESTIMATORS = {
    "mc_grpo": "mc_grpo",
    "krpo": "krpo",
    "ms_grpo": "ms_grpo",
    "rloo": "rloo",
    "bayesian": "aero",
    "bayesian_constant": "aero",
    "global_baseline": "reinforce_ada",
}


def page(repository: Path, name: str) -> str:
    return (repository / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_a_page_that_names_every_setting(repository: Path, name: str) -> None:
    text = page(repository, ELSEWHERE.get(name, name))
    module, _, attribute = ALLOCATORS[name][0].partition(":")
    settings = inspect.signature(getattr(import_module(module), attribute)).parameters
    named = " ".join(re.findall(r"`([^`]+)`", text))
    absent = [key for key in settings if key not in named and key not in ALLOCATORS[name][1] and key != "equal"]
    assert absent == [] and f"`{name}`" in text
    for part in ("arXiv", "**Rule.**", "**Carries between steps:**", "**What it ascends.**", "**When.**", "| p"):
        assert part in text, part


@pytest.mark.parametrize(("name", "where"), ESTIMATORS.items())
def test_an_estimator_is_on_a_page(repository: Path, name: str, where: str) -> None:
    assert name in ADVANTAGES and name in page(repository, where)


def test_numbers_of_the_weight_tables_are_those_of_the_committed_run(repository: Path) -> None:
    lines = (repository / "benchmarks" / "results" / "method_curves.txt").read_text().splitlines()
    rows = {line[:24].strip(): line[24:].split() for line in lines}
    tables = {
        ("hora", "`hora`"): rows["hora"],
        ("hora", "`mass_aware`"): rows["hora mass_aware"],
        ("aero", "`aero`"): rows["aero"],
        ("ar3po", "`ar3po`"): rows["ar3po"],
        ("reinforce_ada", "`balanced`"): rows["reinforce_ada balanced"],
        ("reinforce_ada", "`positive`"): rows["reinforce_ada positive"],
        ("dars", "`et`"): rows["dars et"],
        ("dars", "`hw`"): rows["dars hw"],
        ("gvm", "`gvm_equal`"): rows["gvm_equal"],
        ("knapsack", "`knapsack`"): rows["knapsack"],
        ("optpo", "w"): rows["optpo"],
    }
    for (name, label), values in tables.items():
        lines = [line for line in page(repository, name).splitlines() if line.startswith(f"| {label} |")]
        shown = [float(cell) for cell in lines[-1].split("|")[2:10]]
        assert shown == pytest.approx([float(value) for value in values[:8]], abs=0.051), (name, label)
