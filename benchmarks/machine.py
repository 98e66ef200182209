"""What a committed result must say of how it was made: command, commit, machine, versions, date."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any


def describe(device: str | None = None) -> dict[str, Any]:
    """Command, commit (with `+` where files differ from it), processor, cores, versions."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    dirty = subprocess.run(["git", "status", "--porcelain", "src"], capture_output=True, text=True).stdout.strip()
    versions = {"python": platform.python_version()}
    for package in ("numpy", "numba", "torch", "transformers", "trl"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "command": "python " + " ".join(sys.argv),
        "commit": commit + ("+" if dirty else ""),
        "date": date.today().isoformat(),
        "machine": device or processor(),
        "versions": versions,
    }


def processor() -> str:
    """Model and number of cores of the CPU."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"
