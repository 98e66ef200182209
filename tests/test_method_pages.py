"""Every published rule has a page that names its settings, where it comes from and what it carries."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from rollwise.advantages import ADVANTAGES
from rollwise.allocators import ALLOCATORS
from rollwise.curators import CURATORS
from rollwise.selectors import SELECTORS

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
CHOOSERS = {
    **{
        name: (entry, "codapo" if name == "resampling" else name)
        for name, entry in SELECTORS.items()
        if name != "passes"
    },
    **{
        name: (entry, {"balanced": "reinforce_ada", "dynamic": "dapo", "live": "dapo"}.get(name, name))
        for name, entry in CURATORS.items()
    },
}
"""Selectors and curators by name: their registry entry, and the page they are on."""
SHOWN: dict[str, tuple[str, str, str | None]] = {
    "cero": ("cero", "`cero`", "rollouts"),
    "mopps": ("mopps", "`mopps`", "rollouts"),
    "mopps discount .5": ("mopps", "`discount` 0.5", None),
    "greso alone": ("greso", "selector alone", "rollouts"),
    "greso": ("greso", "`greso`", None),
    "resampling alone": ("codapo", "`resampling` alone", "rollouts"),
    "codapo weights alone": ("codapo", "weights alone", None),
    "codapo": ("codapo", "`codapo`", None),
    "dapo": ("dapo", "`dapo`", None),
    "dapo_capped": ("dapo", "`dapo_capped`", None),
    "replay": ("replay", "`replay`", None),
    "replay even": ("replay", "`power` 0", None),
    "pods": ("pods", "`pods`", None),
    "pods keep 8": ("pods", "`keep` 8", None),
    "aero curator": ("aero", "curator alone", None),
    "balanced curator": ("reinforce_ada", "curator alone", None),
    "reuse": ("reuse", "`reuse`", None),
}
"""Line of `lever_curves.txt` -> page, its row there, and the row of rollouts, where they are not 16 everywhere."""
RUN_FACTS = ("steps", "seed", "updates")
"""Settings that a run gives."""


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


@pytest.mark.parametrize("name", CHOOSERS)
def test_a_selector_or_curator_has_a_page_that_names_every_setting(repository: Path, name: str) -> None:
    (address, preset), where = CHOOSERS[name]
    text = page(repository, where)
    module, _, attribute = address.partition(":")
    settings = inspect.signature(getattr(import_module(module), attribute)).parameters
    named = " ".join(re.findall(r"`([^`]+)`", re.sub("```.*?```", "", text, flags=re.DOTALL)))
    assert [key for key in settings if key not in named and key not in (*preset, *RUN_FACTS)] == []
    assert f"`{name}`" in text
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


def test_numbers_of_selectors_and_curators_are_those_of_the_committed_run(repository: Path) -> None:
    lines = (repository / "benchmarks" / "results" / "lever_curves.txt").read_text().splitlines()[2:]
    found = {first[:24].strip(): (first[24:], half[24:], made[24:]) for first, half, made in zip(*[iter(lines)] * 3)}
    shown = 0
    for label, (where, row, rollouts) in SHOWN.items():
        text = page(repository, where).splitlines()
        cells = [line.split("|")[2:10] for line in text if line.startswith(f"| {row} |")][-1]
        weights, halves = zip(*((float(part) for part in cell.split("±")) for cell in cells))
        assert weights == pytest.approx([float(value) for value in found[label][0].split()[:8]], abs=0.051), label
        assert halves == pytest.approx([float(value) for value in found[label][1].split()[:8]], abs=0.051), label
        if rollouts:
            cells = [line.split("|")[2:10] for line in text if line.startswith(f"| {rollouts} |")][-1]
            made = [float(value) for value in found[label][2].split()[:8]]
            assert [float(cell) for cell in cells] == pytest.approx(made, abs=0.051), label
        shown += 1
    assert shown == len(found) - 1, "all but plain passes"
