"""A tiny language model trained in seconds on a CPU, for paired experiments over many seeds."""

from __future__ import annotations

from rollwise.lab.arms import Arm, parse_arm, parse_arms
from rollwise.lab.loop import Run
from rollwise.lab.runs import Experiment, run_experiment
from rollwise.lab.summary import compare, measures, rollouts_to_reach, summarise
from rollwise.lab.training import Training
from rollwise.lab.warmup import Start, Warmup, prepare_start

__all__ = [
    "Arm",
    "Experiment",
    "Run",
    "Start",
    "Training",
    "Warmup",
    "compare",
    "measures",
    "parse_arm",
    "parse_arms",
    "prepare_start",
    "rollouts_to_reach",
    "run_experiment",
    "summarise",
]
