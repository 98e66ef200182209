"""A verifier's process: reads tasks and writes verdicts, one JSON object a line, under limits of time and memory."""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

from rollwise.tasks.verdict import unknown

SPARE = 2
"""Seconds between the alarm inside Python and the end of the process by the system, where the alarm is not heard."""


class OutOfTime(BaseException):
    """Raised by the alarm; no `Exception`, so that code which swallows those doesn't swallow it."""


def main() -> None:
    """Serve until standard input ends."""
    tasks = os.fdopen(os.dup(0), encoding="utf-8")
    verdicts = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # what a verifier prints must not get among the verdicts
        os.dup2(nothing, stream)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; this process ends with its input
    signal.signal(signal.SIGPROF, _raise_out_of_time)
    limits = json.loads(tasks.readline())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(int(limits["memory_limit"]))
    print("ready", file=verdicts, flush=True)
    for line in tasks:
        print(json.dumps(judge(json.loads(line), float(limits["time_limit"]))), file=verdicts, flush=True)


def judge(task: dict[str, Any], time_limit: float) -> dict[str, Any]:
    """The verdict as JSON, with `leave` where this process had better be replaced."""
    from rollwise.tasks.verifiers import resolve_verifier

    leave = False
    try:
        verifier = resolve_verifier(task["verifier"])
        _prepare(verifier.name)
        _limit_time(time_limit)
        verdict = verifier.judge(task["completion"], task["row"])
        signal.setitimer(signal.ITIMER_PROF, 0)
    except OutOfTime:
        verdict = unknown(f"out of time (over {time_limit:g} s)")
        leave = True  # the alarm may have struck inside a library's bookkeeping
    except MemoryError:
        verdict, leave = unknown("out of memory"), True
    except RecursionError:
        verdict = unknown("the verifier recursed too deep")
    # A verifier's own errors, of every kind, leave the outcome unknown.
    except (Exception, SystemExit) as error:
        verdict = unknown(f"the verifier raised {type(error).__name__}: {str(error)[:200]}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return verdict.as_json() | {"leave": leave}


@functools.cache
def _prepare(name: str) -> None:
    """Import and use once what a verifier needs, before the clock starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))  # the last task's limit would end this
    if name == "math_verify":
        from math_verify import parse, verify

        verify(parse("$\\frac{1}{2}$", parsing_timeout=None), parse("0.5", parsing_timeout=None), timeout_seconds=None)
    elif name == "reasoning_gym":
        import reasoning_gym  # noqa: F401


def _limit_time(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    ceiling = int(time.process_time() + seconds) + SPARE
    resource.setrlimit(resource.RLIMIT_CPU, (ceiling if hard < 0 else min(ceiling, hard), hard))


def _limit_memory(extra: int) -> None:
    pages = Path("/proc/self/statm")
    if not pages.exists():
        return  # without /proc (macOS) the system does not enforce the limit either
    used = int(pages.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + extra, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _raise_out_of_time(*signal_and_frame: object) -> None:
    raise OutOfTime
