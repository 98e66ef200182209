"""Whether a run that calls itself running still is: a process that is killed cannot say so."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

NEVER_ENDED = "never ended: its process is gone without a word (killed, or the machine went down)"


def this_process() -> dict[str, Any]:
    """What tells this process from any other, before and after: host, number and when it started."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "start": start_of(os.getpid())}


def start_of(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; None where the system does not tell or there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def never_ended(run: Path) -> bool:
    """Whether the run's record says `running` and its process, one of this machine, is no more."""
    try:
        record = json.loads((run / "run.json").read_text(encoding="utf-8"))
        return bool(record["status"] == "running") and seen_alive(record) is False
    except (OSError, ValueError, KeyError, TypeError):
        return False


def seen_alive(record: dict[str, Any]) -> bool | None:
    """Whether the process of a run's record lives; None where it cannot be seen: another machine's, or not named."""
    try:
        process = record["process"]
        if process["host"] != socket.gethostname():
            return None
        return is_alive(int(process["pid"]), process["start"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def where(record: dict[str, Any]) -> str:
    """The process of a run's record in words."""
    process = record.get("process")
    if not isinstance(process, dict) or not {"host", "pid"} <= set(process):
        return "its record does not say where"
    return f"process {process['pid']} on {process['host']}"


def is_alive(pid: int, start: str | None) -> bool:
    """Whether that process still runs; one of the same number that started at another time is another."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return start is None or start_of(pid) == start
