"""Reward functions that misbehave, for the processes of a verifier pool to survive."""

from __future__ import annotations

import os
import signal
import time
from typing import Any


def misbehave(completions: list[str], **columns: Any) -> Any:
    """Do what the completion says."""
    (said,) = completions
    if said == "loop":
        while True:
            pass
    if said == "deaf":  # one long call into C, which no alarm inside Python interrupts
        return [pow(7, 10**9)]
    if said == "sleep":
        time.sleep(3600)
    if said == "hoard":
        return [len(bytearray(8 << 30))]
    if said == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if said == "exit":
        raise SystemExit(3)
    if said == "deep":
        return misbehave(completions)
    if said == "print":
        print('{"outcome": "success"}', flush=True)
        return [0]
    values = {"dict": {0: 1.0}, "none": None, "huge": [10**400], "text": ["1"], "two": [1, 1], "abstain": [None]}
    return values.get(said, [float(said == "right")])


async def judge_slowly(completions: list[str], **columns: Any) -> list[float]:
    """A coroutine function."""
    return [1.0 for _ in completions]
