"""What a run folder holds, read for the report; tolerant of a run that is not finished."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
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
    first_wave: FloatArray
    """(T,) mean over prompts of their mean reward in the first wave of a step, NaN where nothing was judged.

    The first wave is decided before any outcome of the step. Later waves go where outcomes send them, so the mean
    over all of a prompt's rollouts is biased as an estimate of its success rate (it often stops at a surprise).
    """
    spent: FloatArray
    """(T,) rollouts spent by the end of that step."""

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
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise RollwiseError(
            f"report: {path} is damaged ({type(error).__name__}: {reason}); restore its files, or train anew"
        ) from None
    if not any(arm.metrics for arm in arms):
        raise RollwiseError(f"report: {path} holds no trained step yet; its status is {record.get('status')}")
    return RunData(path, config, record, [arm for arm in arms if arm.metrics])


def planned(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The arms of a resolved configuration, each with its name and method."""
    from rollwise.cli.config import RunConfig

    return [arm.model_dump(mode="json") for arm in RunConfig.model_validate(config).planned_arms()]


def read_arm(run: Path, method: dict[str, Any], result: dict[str, Any]) -> ArmData:
    """Read one arm's metrics and ledger, as far as they were written."""
    folder = run / str(method["name"])
    steps: dict[int, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for line in read_lines(folder / "rollwise" / "ledger.jsonl"):
        if line["type"] == "rewind":
            for step in [step for step in steps if step >= line["step"]]:
                del steps[step]
        elif line["type"] == "rollout":
            steps[line["step"]][line["prompt_id"]].append(line)
    groups = [lines for prompts in steps.values() for lines in prompts.values()]
    counted = [[len(lines), tally(lines, "success", "failure"), tally(lines, "success")] for lines in groups]
    table = np.array(counted, dtype=np.int64).reshape(-1, 3)
    sizes = [sum(map(len, prompts.values())) for prompts in steps.values()]
    return ArmData(
        name=str(method["name"]),
        method=method,
        result=result,
        metrics=list(read_lines(folder / "metrics.jsonl")),
        n=table[:, 0],
        known=table[:, 1],
        successes=table[:, 2],
        first_wave=np.array([first_wave_reward(prompts.values()) for prompts in steps.values()], dtype=np.float64),
        spent=np.cumsum(sizes, dtype=np.float64),
    )


def tally(lines: Iterable[dict[str, Any]], *outcomes: str) -> int:
    """How many rollouts had one of these outcomes."""
    return sum(line["outcome"] in outcomes for line in lines)


def first_wave_reward(groups: Iterable[list[dict[str, Any]]]) -> float:
    """Mean over prompts of their mean reward in the first wave, NaN without one."""
    rewards = [
        [line["reward"] for line in lines if line["wave"] == 0 and line["reward"] is not None] for lines in groups
    ]
    means = [sum(known) / len(known) for known in rewards if known]
    return sum(means) / len(means) if means else math.nan


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """JSON objects of a file of lines; nothing if it is absent; a last line that was cut short is left out.

    Raises:
        ValueError: a line that is no object; the message names the file and the line.
    """
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise ValueError(f"{path.name} line {number} is no object")
            yield row
