"""What a run folder holds, read for the report; tolerant of a run that is not finished."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rollwise.types import FloatArray, IntArray, RollwiseError

PREFIX = "rollwise/"


@dataclass(frozen=True)
class ArmData:
    """One arm: its logged steps, and for each of M prompt-steps how many rollouts it got and how they went."""

    name: str
    method: dict[str, Any]
    result: dict[str, Any]
    metrics: list[dict[str, Any]]
    n: IntArray
    """(M,) rollouts of a prompt in a step."""
    known: IntArray
    """(M,) of those, the ones with an outcome."""
    successes: IntArray
    """(M,) of those, the successes."""

    def series(self, name: str) -> tuple[FloatArray, FloatArray]:
        """(T,) rollouts spent and (T,) the metric `rollwise/<name>`, for the steps that logged it."""
        rows = [row for row in self.metrics if row.get(PREFIX + name) is not None]
        spent = np.array([row[PREFIX + "rollouts_spent"] for row in rows], dtype=np.float64)
        return spent, np.array([row[PREFIX + name] for row in rows], dtype=np.float64)

    @property
    def adaptive(self) -> bool:
        """Whether the arm's sizes may differ from G."""
        return self.method["allocator"] not in ("uniform", "observe")


@dataclass(frozen=True)
class RunData:
    """A run: configuration, status and arms, in the order they were planned."""

    path: Path
    config: dict[str, Any]
    record: dict[str, Any]
    arms: list[ArmData]


def read_run(path: Path) -> RunData:
    """Read a run folder.

    Raises:
        RollwiseError: if it is no run folder, is damaged, or holds no trained step.
    """
    if not (path / "run.json").is_file() or not (path / "config.yaml").is_file():
        raise RollwiseError(f"report: {path} is not a run folder (no run.json); give one that rollwise train wrote")
    try:
        record = json.loads((path / "run.json").read_text(encoding="utf-8"))
        config = yaml.safe_load((path / "config.yaml").read_text(encoding="utf-8"))
        arms = [read_arm(path, method, record["arms"].get(method["name"], {})) for method in planned(config)]
    except (ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise RollwiseError(f"report: {path} is damaged ({type(error).__name__}: {reason})") from None
    if not any(arm.metrics for arm in arms):
        raise RollwiseError(f"report: {path} holds no trained step yet; its status is {record['status']}")
    return RunData(path, config, record, [arm for arm in arms if arm.metrics])


def planned(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The arms of a resolved configuration, each with its name and method."""
    from rollwise.cli.config import RunConfig

    return [arm.model_dump(mode="json") for arm in RunConfig.model_validate(config).planned_arms()]


def read_arm(run: Path, method: dict[str, Any], result: dict[str, Any]) -> ArmData:
    """Read one arm's metrics and ledger, as far as they were written."""
    folder = run / str(method["name"])
    counts: dict[int, dict[str, IntArray]] = defaultdict(lambda: defaultdict(lambda: np.zeros(3, dtype=np.int64)))
    for line in read_lines(folder / "rollwise" / "ledger.jsonl"):
        if line["type"] == "rewind":
            for step in [step for step in counts if step >= line["step"]]:
                del counts[step]
        elif line["type"] == "rollout":
            known, success = line["outcome"] != "unknown", line["outcome"] == "success"
            counts[line["step"]][line["prompt_id"]] += np.array([1, known, success])
    rows = [row for prompts in counts.values() for row in prompts.values()]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    metrics = list(read_lines(folder / "metrics.jsonl"))
    return ArmData(str(method["name"]), method, result, metrics, table[:, 0], table[:, 1], table[:, 2])


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """JSON objects of a file of lines; nothing if it is absent; a last line that was cut short is left out."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)
