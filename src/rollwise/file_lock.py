"""One writer to a file: the system's own lock, which ends with the process that holds it."""

from __future__ import annotations

from io import IOBase

try:
    import fcntl
except ImportError:  # not a POSIX system: files are then not guarded against other processes
    fcntl = None  # type: ignore[assignment]


def claim(file: IOBase) -> bool | None:
    """Take the lock of an open file until it is closed; False where it is taken, by another process or opening.

    None where the system or the file system has no locks, so that nobody can tell.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
