"""Fixtures of the trainer tests."""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the TRL adapter needs rollwise[train]")
pytest.importorskip("trl", reason="the TRL adapter needs rollwise[train]")


def freeze_imports() -> None:
    """Leave what importing made out of later garbage collections: accelerate asks for one at every start of a training,
    and it would take longer than a tiny run."""
    importlib.import_module("tests.integrations.trl.support")
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    freeze_imports()


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Folder of a tiny saved model."""
    from tests.integrations.trl.support import save_model

    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def launch(model: str, repository: Path) -> Callable[..., list[dict[str, Any]]]:
    """`launch(folder, processes, runs)`: do the runs in new processes, return what each process saved, by run."""

    def start(folder: Path, processes: int, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        worker = ["-m", "tests.integrations.trl.worker", str(folder), model, json.dumps(runs)]
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
        command = [sys.executable, *(torchrun if processes > 1 else []), *worker]
        environment = {**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr[-4000:]
        return [torch.load(folder / f"results_{rank}.pt", weights_only=False) for rank in range(processes)]

    return start
