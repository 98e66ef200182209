"""Verifiers that run foreign code, in processes that may hang, crash or eat memory without harm.

A pool owns `workers` processes, each fed by a thread, one completion at a time. A task is cut off after `time_limit`
seconds of processor time (so that a busy machine makes nothing unknown), after WALL times that on the clock if it
sleeps, and beyond `memory_limit` bytes. What is cut off is unknown, with the reason; the process is replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from rollwise.tasks.verdict import Verdict, unknown
from rollwise.types import RollwiseError

TIME_LIMIT = 5.0
"""Seconds of processor time for one completion."""

WALL = 6
"""Times the limit that may pass on the clock for a process that sleeps; one that waits for a core gets PATIENCE more."""

PATIENCE = 20

MEMORY_LIMIT = 1 << 30
"""Bytes of address space a process may add to what it starts with."""

START_LIMIT = 120.0
"""Seconds a process may take to start."""

START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from rollwise.tasks.worker import main; main()"

Task = tuple[str, str, dict[str, Any], "Future[Verdict]"]


class VerifierPool:
    """Processes that judge completions; usable from any thread. They start when first needed."""

    def __init__(
        self,
        workers: int | None = None,
        *,
        time_limit: float = TIME_LIMIT,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        """`workers` processes, by default as many as the cores, at most 4.

        Raises:
            RollwiseError: a number or limit below 1 process, 0 seconds or 0 bytes.
        """
        self.workers = workers if workers is not None else max(1, min(4, cores()))
        self.time_limit, self.memory_limit = time_limit, memory_limit
        if self.workers < 1 or time_limit <= 0 or memory_limit <= 0:
            raise RollwiseError("verifier pool: workers, time_limit and memory_limit must be positive")
        self.killed = 0
        """Processes that had to be replaced."""
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._idle = 0
        self._closed = False
        self._owner = os.getpid()

    def submit(self, verifier: str, completion: str, row: Mapping[str, Any]) -> Future[Verdict]:
        """The verdict of a verifier by name, as a future; it always comes, whatever the verifier does.

        Raises:
            RollwiseError: the pool is closed.
        """
        future: Future[Verdict] = Future()
        with self._lock:
            if self._closed:
                raise RollwiseError("verifier pool: it is closed; make a new one")
            self._tasks.put((verifier, completion, dict(row), future))
            if self._tasks.qsize() > self._idle and len(self._threads) < self.workers:
                thread = threading.Thread(target=self._serve, name="verifier", daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def close(self) -> None:
        """End the processes once what was submitted is judged; may be called twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for _ in self._threads:
                self._tasks.put(None)
        for thread in self._threads:
            thread.join(timeout=WALL * self.time_limit + 1)

    def __enter__(self) -> VerifierPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _serve(self) -> None:
        """A worker's thread: take a task, have its process judge it, replace the process where that went wrong."""
        process: _Process | None = None
        try:
            while True:
                with self._lock:
                    self._idle += 1
                task = self._tasks.get()
                with self._lock:
                    self._idle -= 1
                if task is None:
                    return
                verifier, completion, row, future = task
                if not future.set_running_or_notify_cancel():
                    continue
                try:
                    process = process or _Process(self.time_limit, self.memory_limit)
                    verdict, healthy = process.judge(verifier, completion, row)
                    if not healthy:
                        process.end()
                        process = None
                        self.killed += 1
                except RollwiseError as error:
                    future.set_exception(error)
                # Whatever happens to one task must not take the thread, and with it the pool, down.
                except Exception as error:
                    future.set_result(unknown(f"{type(error).__name__}: {error}"))
                else:
                    future.set_result(verdict)
        finally:
            if process is not None:
                process.end()


class _Process:
    """One worker process and the pipe to it."""

    def __init__(self, time_limit: float, memory_limit: int) -> None:
        self.time_limit = time_limit
        self._rest = b""
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        self._send({"time_limit": time_limit, "memory_limit": memory_limit})
        if self._receive(START_LIMIT) is None:
            self.end()
            raise RollwiseError("verifier pool: a process did not start; check that rollwise imports in a new Python")

    def judge(self, verifier: str, completion: str, row: Mapping[str, Any]) -> tuple[Verdict, bool]:
        """The verdict, and whether the process can go on."""
        try:
            self._send({"verifier": verifier, "completion": completion, "row": row})
            answer = self._receive(WALL * self.time_limit)
            if answer is None and self._is_running():
                answer = self._receive(PATIENCE * WALL * self.time_limit)
        except OSError:
            answer = b""
        if answer is None:
            return unknown(f"out of time (over {WALL * self.time_limit:g} s on the clock)"), False
        if not answer:
            status = self._process.wait()
            if status == -signal.SIGXCPU:
                return unknown(f"out of time (over {self.time_limit:g} s)"), False
            return unknown(f"the verifier's process ended with status {status}"), False
        data = json.loads(answer)
        return Verdict.read(data), not data.get("leave", False)

    def end(self) -> None:
        """Kill the process and close the pipes."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()

    def _is_running(self) -> bool:
        """Whether the process has work to do, on a core or waiting for one; where it can't be told, no."""
        try:
            return Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"
        except (OSError, IndexError):
            return False

    def _send(self, data: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(data, default=str).encode() + b"\n")
        self._process.stdin.flush()

    def _receive(self, limit: float) -> bytes | None:
        """The next line; None once `limit` seconds are over, nothing where the process has ended."""
        assert self._process.stdout is not None
        stream, until = self._process.stdout.fileno(), time.monotonic() + limit
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                return None
            piece = os.read(stream, 1 << 16)
            if not piece:
                return b""
            self._rest += piece
        line, self._rest = self._rest.split(b"\n", 1)
        return line


_shared: VerifierPool | None = None
_guard = threading.Lock()


def shared_pool() -> VerifierPool:
    """The process-wide pool, made at the first call; a forked child gets one of its own."""
    global _shared
    with _guard:
        if _shared is None or _shared._owner != os.getpid() or _shared._closed:
            _shared = VerifierPool()
            atexit.register(_shared.close)
        return _shared


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
