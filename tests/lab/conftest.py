"""A warm start made once: a task that is learnt in seconds, stopped early."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from rollwise.lab.warmup import Start, prepare_start

from .support import WARMUP


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Results are compared bit for bit, which needs one thread everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of warm checkpoints."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def start(cache: Path) -> Start:
    """The start of `WARMUP`."""
    return prepare_start(WARMUP, cache, report=lambda line: None)
