"""Settings every test runs under: one thread, no network look-ups, no telemetry."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("NUMBA_NUM_THREADS", "2")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# compiling and table solving happen inside the first example
settings.register_profile("rollwise", deadline=None)
settings.load_profile("rollwise")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout the tests run from."""
    return REPOSITORY


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Real data sets (`ROLLWISE_DATA`, by default `../shared/data` beside the repository); skips where absent."""
    folder = Path(os.environ.get("ROLLWISE_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}: set ROLLWISE_DATA to the folder that holds gsm8k/")
    return folder


@pytest.fixture(scope="session")
def training_log(data_folder: Path) -> Path:
    """Counts per visit of a real training run; skips where absent."""
    path = data_folder / "success_rates" / "rlvr_qwen25math1.5b_dsr_sub.jsonl.gz"
    if not path.exists():
        pytest.skip(f"no {path}: set ROLLWISE_DATA to a folder that holds success_rates/")
    return path


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run with two arms; do not change it, copy it."""
    from simulated_run import write_finished_run

    return write_finished_run(tmp_path_factory.mktemp("runs") / "demo")
