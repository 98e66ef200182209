"""Solved tables on disk and in memory: save, load, and solve at most once.

A file is an npz without pickle: a JSON header (format version, problem, checksum), h, choices and values. The state
space is rebuilt from the problem, so a file that does not fit its own header is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import warnings
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from rollwise.solver.exact import MEMORY_LIMIT, check_memory, check_problem, is_folded, solve
from rollwise.solver.solution import Solution
from rollwise.solver.states import build_space
from rollwise.types import RollwiseError
from rollwise.utilities import UTILITIES, Kind, Utility, get_utility

FORMAT = 1
"""Version of the file format; raised whenever the order of states or the meaning of a field changes."""

MEMORY_BYTES = 2**30
"""Bytes of solved tables `cached_solve` keeps in memory, least recently used ones going first."""

DISK_STATES = 100_000
"""States from which a table goes to disk; a smaller one is solved faster than it is read."""

_memory: OrderedDict[str, Solution] = OrderedDict()
_lock = threading.Lock()


def save_table(solution: Solution, path: str | os.PathLike[str]) -> None:
    """Write a solved table; the file appears whole or not at all.

    Raises:
        RollwiseError: the folder cannot be written.
    """
    target = Path(path)
    terms = solution.utility.table(solution.space.cap)
    header = {
        "format": FORMAT,
        "name": solution.utility.name,
        "kind": solution.utility.kind,
        "advantage_form": solution.utility.advantage_form,
        "digest": solution.utility.digest(solution.space.cap),
        "prompts": solution.prompts,
        "budget": solution.budget,
        "prior": list(solution.prior),
        "n_max": solution.n_max,
        "value": solution.value,
        "uniform_value": solution.uniform_value,
        "seconds": solution.seconds,
    }
    arrays = {"terms": terms, "choices": solution.choices, "values": solution.values}
    header["checksum"] = _checksum(header, arrays)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    partial = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=target.name, suffix=".part", delete=False) as file:
            partial = file.name
            np.savez(cast(Any, file), header=text, **cast(Any, arrays))
        os.replace(partial, target)
    except OSError as error:
        if partial is not None:
            Path(partial).unlink(missing_ok=True)
        raise RollwiseError(f"table file {target} cannot be written: {error.strerror or error}") from error


def load_table(path: str | os.PathLike[str]) -> Solution:
    """Read a table written by `save_table`.

    Raises:
        RollwiseError: no such file, not a table, damaged, or of another format version.
    """
    target = Path(path)
    try:
        with np.load(target, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("terms", "choices", "values")}
            header = json.loads(file["header"].tobytes())
        version = header["format"]
        if version == FORMAT and _checksum(header, arrays) == header["checksum"]:
            return _rebuild(header, arrays)
    except FileNotFoundError as error:
        raise RollwiseError(f"table file {target} does not exist: give a file that save_table wrote") from error
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise RollwiseError(f"table file {target} cannot be read: {error.strerror}") from error
        # numpy, zipfile, json and the decompressors have a dozen errors for bytes that are no archive of theirs
        raise RollwiseError(
            f"table file {target} is damaged or not a rollwise table: solve and save it anew"
        ) from error
    if version != FORMAT:
        raise RollwiseError(f"table file {target} has format {version!r}, this version reads {FORMAT}: save it anew")
    raise RollwiseError(f"table file {target} is damaged (its checksum differs): solve and save it anew")


def cached_solve(
    utility: str | Utility,
    prompts: int,
    budget: int,
    prior: tuple[float, float] = (1.0, 1.0),
    n_max: int | None = None,
    *,
    advantage_form: str = "raw",
    keep_values: bool = True,
    memory_limit: int = MEMORY_LIMIT,
    disk_states: int = DISK_STATES,
) -> Solution:
    """As `solve`, but from memory or the cache folder where the same problem was solved before.

    Tables of at least `disk_states` states are kept in `cache_folder()`. A damaged file is solved anew; a folder that
    cannot be written only warns.
    """
    utility = get_utility(utility, advantage_form)
    cap = check_problem(prompts, budget, prior, n_max)
    # A cap at or above the budget binds nobody, so it is the same table.
    n_max = None if cap == budget else n_max
    check_memory(prompts, budget, cap, True, keep_values, memory_limit)
    key = repr((FORMAT, utility.digest(cap), prompts, budget, *map(float, prior), n_max, keep_values))
    with _lock:
        found = _memory.pop(key, None)
        if found is None:
            path = cache_folder() / f"table-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.npz"
            found = _read(path)
            if found is None:
                found = solve(
                    utility, prompts, budget, prior, n_max, keep_values=keep_values, memory_limit=memory_limit
                )
                if found.states >= disk_states:
                    _write(found, path)
        _memory[key] = found
        while len(_memory) > 1 and sum(_bytes(kept) for kept in _memory.values()) > MEMORY_BYTES:
            _memory.popitem(last=False)
    return replace(found, utility=utility)


def cache_folder() -> Path:
    """$ROLLWISE_CACHE, else rollwise under the user's cache folder, or the temporary one of a user without a home."""
    given = os.environ.get("ROLLWISE_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "rollwise"
    try:
        return Path.home() / ".cache" / "rollwise"
    except RuntimeError:  # an account without a home, as in some containers
        return Path(tempfile.gettempdir()) / "rollwise"


def clear_memory() -> None:
    """Forget the tables `cached_solve` holds in memory; files stay."""
    with _lock:
        _memory.clear()


def _read(path: Path) -> Solution | None:
    if not os.path.exists(path):  # False, not an error, where the folder may not be searched
        return None
    try:
        return load_table(path)
    except RollwiseError as error:
        warnings.warn(f"{error}; it is solved again", RuntimeWarning, stacklevel=3)
        return None


def _write(solution: Solution, path: Path) -> None:
    try:
        save_table(solution, path)
    except RollwiseError as error:
        warnings.warn(f"{error}; set ROLLWISE_CACHE to a folder that can be", RuntimeWarning, stacklevel=3)


def _bytes(solution: Solution) -> int:
    return solution.values.nbytes + solution.choices.nbytes


def _checksum(header: dict[str, Any], arrays: dict[str, Any]) -> str:
    state = hashlib.blake2b(digest_size=16)
    plain = {key: value for key, value in header.items() if key != "checksum"}
    state.update(json.dumps(plain, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        state.update(f"{name}{array.dtype}{array.shape}".encode())
        state.update(array.data)
    return state.hexdigest()


def _rebuild(header: dict[str, Any], arrays: dict[str, Any]) -> Solution:
    terms, choices, values = arrays["terms"], arrays["choices"], arrays["values"]
    prompts, budget, n_max = header["prompts"], header["budget"], header["n_max"]
    prior = (float(header["prior"][0]), float(header["prior"][1]))
    cap = check_problem(prompts, budget, prior, n_max)
    space = build_space(prompts, budget, cap, is_folded(terms, prior))
    if choices.size != space.offsets[-2] or values.size not in (0, space.size) or terms.shape != (cap + 1, cap + 1):
        raise ValueError("arrays do not fit the problem of the header")
    utility = Utility.from_table(terms, cast(Kind, header["kind"]), header["name"])
    if header["name"] in UTILITIES:
        published = get_utility(header["name"], header["advantage_form"])
        utility = published if published.digest(cap) == header["digest"] else utility
    return Solution(
        utility=utility,
        prompts=prompts,
        budget=budget,
        prior=prior,
        n_max=n_max,
        space=space,
        choices=choices,
        values=values,
        value=header["value"],
        uniform_value=header["uniform_value"],
        seconds=header["seconds"],
    )
