"""`rollwise doctor`: what is installed, whether the trainer's hooks still look as expected, threads, the solver."""

from __future__ import annotations

import importlib
import inspect
import os
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rollwise.cli.run_folder import installed_versions
from rollwise.cli.run_state import NEVER_ENDED, never_ended
from rollwise.report.run_search import runs_in

TRL_SUPPORTED = ((1, 14), (1, 17))
"""From the first version on, below the second; `make compat` runs the tests on both ends."""
HOOKS = {
    "_generate_and_score_completions": ("self", "inputs"),
    "_calculate_rewards": ("self", "inputs", "prompts", "completions", "completion_ids_list"),
}
"""Methods of `GRPOTrainer` that rollwise overrides, and their parameters."""


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `ok` True, False, or None where it is only information."""

    what: str
    ok: bool | None
    detail: str

    def as_json(self) -> dict[str, Any]:
        """The finding as JSON data; `ok` stands only where there is a verdict."""
        return {"detail": self.detail} if self.ok is None else {"ok": self.ok, "detail": self.detail}


def examine() -> list[Finding]:
    """Look at everything; never raises for something that is missing or broken."""
    findings = [Finding(name, None, version) for name, version in installed_versions().items()]
    return [*findings, *examine_trl(), examine_report(), *examine_threads(), examine_core(), *examine_runs()]


def examine_trl() -> list[Finding]:
    """Whether the TRL adapter can be used, and if not, why."""
    try:
        found = metadata.version("trl")
    except metadata.PackageNotFoundError:
        return [Finding("TRL adapter", False, "trl is not installed; pip install 'rollwise[train]'")]
    version = tuple(int(part) for part in found.split(".")[:2])
    lowest, above = TRL_SUPPORTED
    span = f"{lowest[0]}.{lowest[1]} or newer, below {above[0]}.{above[1]}"
    try:
        trainer = importlib.import_module("trl").GRPOTrainer
    except Exception as error:
        return [Finding("TRL adapter", False, f"trl {found} cannot be imported ({first_line(error)})")]
    hooks = [examine_hook(trainer, name, expected) for name, expected in HOOKS.items()]
    try:
        importlib.import_module("rollwise.integrations.trl").RollwiseGRPOTrainer  # noqa: B018
        adapter = Finding("TRL adapter", lowest <= version < above, f"trl {found}; supported: {span}")
    except Exception as error:
        adapter = Finding("TRL adapter", False, f"cannot be imported ({first_line(error)})")
    return [adapter, *hooks]


def examine_hook(trainer: Any, name: str, expected: tuple[str, ...]) -> Finding:
    """Whether a method that rollwise overrides has the parameters it is called with."""
    method = getattr(trainer, name, None)
    if method is None:
        return Finding(f"hook {name}", False, "GRPOTrainer has no such method; use a supported TRL")
    found = tuple(inspect.signature(method).parameters)
    if found != expected:
        return Finding(f"hook {name}", False, f"takes ({', '.join(found)}), expected ({', '.join(expected)})")
    return Finding(f"hook {name}", True, f"({', '.join(found)})")


def examine_report() -> Finding:
    """Whether figures can be drawn."""
    try:
        return Finding("report", True, f"matplotlib {metadata.version('matplotlib')}")
    except metadata.PackageNotFoundError:
        return Finding("report", False, "matplotlib is not installed; pip install 'rollwise[report]'")


def examine_threads() -> list[Finding]:
    """Cores, and the setting that keeps small models from spinning on a busy machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = os.environ.get("OMP_NUM_THREADS")
    advice = "set by rollwise for its own arms; set OMP_NUM_THREADS=1 for small models on CPUs in your own scripts"
    return [
        Finding("cores", None, str(cores)),
        Finding("OMP_NUM_THREADS", None, threads if threads else f"not set ({advice})"),
    ]


def examine_core() -> Finding:
    """Whether the compiled solver runs here and gives a value known in closed form (1/36)."""
    try:
        from rollwise.solver import solve

        value = float(solve("min_variance", prompts=2, budget=4).value)
    except Exception as error:
        return Finding("solver", False, first_line(error))
    return Finding("solver", abs(value - 1 / 36) < 1e-12, f"min_variance, 2 prompts, 4 rollouts: {value:.6f}")


def examine_runs(folder: Path = Path("runs")) -> list[Finding]:
    """Runs of a folder that were killed, or broke off with the machine, and could not say so."""
    return [Finding(f"run {run}", None, NEVER_ENDED) for run in runs_in(folder) if never_ended(run)]


def first_line(error: Exception) -> str:
    """The first line of an error, with its type."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
