"""What the package promises as an installed thing: its version, its arrows between parts, its settings."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

UPPER = ("tasks", "integrations", "cli", "report", "simulate", "lab")
"""Parts above the core, as the design draws them; they may need more, and import it where they use it."""
LIGHT = {"numpy", "numba", "rollwise"}


def core_modules(repository: Path) -> list[Path]:
    source = repository / "src" / "rollwise"
    return [
        path
        for path in sorted(source.rglob("*.py"))
        if path.relative_to(source).parts[0] not in (*UPPER, "__main__.py")
    ]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


def test_the_core_imports_numpy_numba_and_the_standard_library_only(repository: Path) -> None:
    allowed = LIGHT | set(sys.stdlib_module_names)
    modules = core_modules(repository)
    assert len(modules) > 10
    foreign = {str(path): {n for n in imported(path) if n.split(".")[0] not in allowed} for path in modules}
    assert {path: names for path, names in foreign.items() if names} == {}


def test_the_core_does_not_reach_up_into_the_parts_above_it(repository: Path) -> None:
    upper = tuple(f"rollwise.{part}" for part in UPPER)
    upward = {str(path): {n for n in imported(path) if n.startswith(upper)} for path in core_modules(repository)}
    assert {path: names for path, names in upward.items() if names} == {}


def test_importing_rollwise_its_command_line_or_its_simulator_loads_no_training_library() -> None:
    heavy = ("torch", "trl", "typer", "pandas")
    light = "import rollwise, rollwise.cli, rollwise.simulate, sys"
    code = f"{light}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_the_one_in_pyproject(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    assert metadata.version("rollwise") == project["version"]


def test_every_direct_dependency_has_a_pin_in_constraints(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [r for rows in project["optional-dependencies"].values() for r in rows]
    names = {_name(row) for row in wanted} - {"rollwise"}
    rows = [row for row in (repository / "constraints.txt").read_text().splitlines() if "==" in row]
    assert names - {_name(row) for row in rows} == set()


def _name(requirement: str) -> str:
    for mark in "[<>=~! ;":
        requirement = requirement.split(mark)[0]
    return requirement.lower().replace("_", "-")


@pytest.mark.parametrize("name", ["Makefile", ".ci/run", "LICENSE", "constraints.txt"])
def test_what_the_readme_points_at_is_there(repository: Path, name: str) -> None:
    assert (repository / name).stat().st_size > 0


def test_continuous_integration_runs_the_test_command_of_the_readme(repository: Path) -> None:
    assert "exec make test" in (repository / ".ci" / "run").read_text()
    assert "make test" in (repository / "README.md").read_text()


def test_test_modules_outside_packages_have_names_of_their_own(repository: Path) -> None:
    paths = [path for path in (repository / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    names = [path.name for path in paths]
    assert sorted(names) == sorted(set(names)), "pytest imports such modules by their bare name"
