"""One way to compile kernels: no interpreter lock, and cached on disk where a folder can be written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

_CHUNK = 8192
"""Items below which a thread costs more than it saves."""


def compile_kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` with numba; installs whose folders are read-only compile anew in every process."""
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:
        return numba.njit(nogil=True, error_model="numpy")(function)


@intrinsic
def larger(context: Any, a: Any, b: Any) -> Any:
    """max(a, b) of two float64 in kernels, neither of them NaN.

    An if in a loop becomes a store under a mask, which costs several times the maximum on some processors.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = context.get_value_type(types.float64)
        kind = cgutils.ir.FunctionType(double, [double, double])
        maximum = builder.module.declare_intrinsic("llvm.maxnum", [double], kind)
        return builder.call(maximum, arguments, fastmath=("nnan",))

    return types.float64(types.float64, types.float64), generate


def thread_count() -> int:
    """Threads worth starting: the cores this process may use, at most NUMBA_NUM_THREADS."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(available, int(numba.config.NUMBA_NUM_THREADS)))


def run_chunks(pool: ThreadPoolExecutor | None, size: int, work: Callable[[int, int], Any]) -> None:
    """Call `work(low, high)` over [0, size) in pieces; kernels release the lock, so pieces run side by side.

    Plain threads rather than numba's own: those abort the process when two threads of a trainer solve at once.
    """
    if pool is None or size < 2 * _CHUNK:
        work(0, size)
        return
    step = max(_CHUNK, -(-size // (4 * thread_count())))
    for done in [pool.submit(work, low, high) for low, high in _spans(size, step)]:
        done.result()


def _spans(size: int, step: int) -> Iterator[tuple[int, int]]:
    return ((low, min(low + step, size)) for low in range(0, size, step))
