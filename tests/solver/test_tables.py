"""Saved tables come back bit for bit or not at all; the cache never stands in the way."""

from __future__ import annotations

import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollwise.solver import cached_solve, load_table, save_table, solve, tables
from rollwise.types import RollwiseError
from rollwise.utilities import Utility

USER = Utility.from_table(np.arange(81).reshape(9, 9) % 7 / 4, "sum", name="mine")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROLLWISE_CACHE", str(tmp_path / "cache"))
    tables.clear_memory()
    yield tmp_path / "cache"
    tables.clear_memory()


@pytest.mark.parametrize(
    "solved",
    [
        solve("min_squared_advantage", 3, 9, advantage_form="normalised"),
        solve("sum_max_reward", 2, 6, prior=(0.5, 2.0), n_max=4),
        solve("sum_variance", 2, 6, keep_values=False),
        solve("min_variance", 9, 4),
        solve(USER, 2, 8),
    ],
    ids=lambda solved: f"{solved.utility.name}-{solved.prompts}-{solved.budget}",
)
def test_a_table_comes_back_as_it_was(solved, tmp_path):
    save_table(solved, tmp_path / "a.npz")
    loaded = load_table(tmp_path / "a.npz")
    for name in ("prompts", "budget", "prior", "n_max", "value", "uniform_value", "seconds", "states"):
        assert getattr(loaded, name) == getattr(solved, name)
    np.testing.assert_array_equal(loaded.values, solved.values)
    np.testing.assert_array_equal(loaded.choices, solved.choices)
    s = np.eye(solved.prompts, dtype=int)
    np.testing.assert_array_equal(loaded.actions(s, s), solved.actions(s, s))
    assert loaded.utility.digest(solved.space.cap) == solved.utility.digest(solved.space.cap)
    assert loaded.utility.name == solved.utility.name
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def damage(data: bytes, how: str) -> bytes:
    if how == "truncated":
        return data[: len(data) // 2]
    if how == "empty":
        return b""
    if how == "text":
        return b"not a table at all"
    middle = data.index(b"values.npy") + 200
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("how", ["truncated", "empty", "text", "flipped bit"])
def test_a_damaged_file_is_one_clear_line(how, tmp_path):
    path = tmp_path / "a.npz"
    save_table(solve("min_variance", 3, 9), path)
    path.write_bytes(damage(path.read_bytes(), how))
    with pytest.raises(RollwiseError, match=r"a\.npz is damaged") as caught:
        load_table(path)
    assert "\n" not in str(caught.value)


def zip_fields(data: bytes, offset_local: int, offset_central: int, value: int) -> bytes:
    """Set one two-byte field of every entry's local and central zip header."""
    changed = bytearray(data)
    for mark, offset in ((b"PK\x03\x04", offset_local), (b"PK\x01\x02", offset_central)):
        start = data.find(mark)
        while start >= 0:
            changed[start + offset : start + offset + 2] = value.to_bytes(2, "little")
            start = data.find(mark, start + 4)
    return bytes(changed)


RARE = {
    "encrypted": lambda data: zip_fields(data, 6, 8, 1),
    "compressed in an unknown way": lambda data: zip_fields(data, 8, 10, 99),
    "said to be bz2": lambda data: zip_fields(data, 8, 10, 12),
    "said to be lzma": lambda data: zip_fields(data, 8, 10, 14),
}


@pytest.mark.parametrize("how", RARE)
def test_an_archive_of_a_rare_kind_is_one_clear_line_and_solved_again(how, own_cache):
    first = cached_solve("min_variance", 2, 6, disk_states=1)
    (path,) = own_cache.iterdir()
    path.write_bytes(RARE[how](path.read_bytes()))
    with pytest.raises(RollwiseError, match=r"is damaged or not a rollwise table: solve and save it anew$"):
        load_table(path)
    tables.clear_memory()
    with pytest.warns(RuntimeWarning, match="solved again"):
        assert cached_solve("min_variance", 2, 6, disk_states=1).value == first.value


@pytest.mark.parametrize(
    "header",
    ["{'descr': '<f8', 'fortran_order': False, 'shape': (", "{'shape': (10**99,)", "(" * 300, "\\", '"""', "{'a': 1}"],
)
def test_an_array_header_that_cannot_be_parsed_is_one_clear_line(header, tmp_path):
    text = header.encode().ljust(117) + b"\n"
    raw = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        for name in ("header", "terms", "choices", "values"):
            file.writestr(f"{name}.npy", raw)
    with pytest.raises(RollwiseError, match="is damaged or not a rollwise table"):
        load_table(tmp_path / "a.npz")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(1, 255), length=st.integers(1, 9))
def test_whatever_bytes_change_a_table_is_refused_or_the_same(tmp_path_factory, place, value, length):
    path = tmp_path_factory.getbasetemp() / "fuzz.npz"
    solved = solve("min_variance", 2, 6)
    save_table(solved, path)
    data = bytearray(path.read_bytes())
    start = int(place * len(data))
    for k in range(start, min(start + length, len(data))):
        data[k] ^= value
    path.write_bytes(bytes(data))
    try:
        loaded = load_table(path)
    except RollwiseError:
        return
    np.testing.assert_array_equal(loaded.values, solved.values)
    np.testing.assert_array_equal(loaded.choices, solved.choices)


def rewrite(path, **changes):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **{**arrays, **changes})


def test_changed_arrays_fail_the_checksum(tmp_path):
    path = tmp_path / "a.npz"
    solved = solve("min_variance", 3, 9)
    save_table(solved, path)
    rewrite(path, values=solved.values + 1e-9)
    with pytest.raises(RollwiseError, match="checksum"):
        load_table(path)


def test_foreign_archives_arrays_and_missing_files_are_named(tmp_path):
    np.savez(tmp_path / "foreign.npz", weights=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "pickled.npz", header=np.array([{"a": 1}], dtype=object))
    for name in ("foreign.npz", "array.npy", "pickled.npz"):
        with pytest.raises(RollwiseError, match="not a rollwise table"):
            load_table(tmp_path / name)
    with pytest.raises(RollwiseError, match=r"none\.npz does not exist"):
        load_table(tmp_path / "none.npz")
    with pytest.raises(RollwiseError, match="cannot be read"):
        load_table(tmp_path)


def test_another_format_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "FORMAT", 99)
    save_table(solve("min_variance", 2, 4), tmp_path / "a.npz")
    monkeypatch.undo()
    with pytest.raises(RollwiseError, match="format 99"):
        load_table(tmp_path / "a.npz")


def test_cache_keeps_one_solution_per_problem(own_cache):
    first = cached_solve("min_variance", 2, 6, disk_states=1)
    again = cached_solve("min_variance", 2, 6, n_max=6, disk_states=1)
    assert again.values is first.values
    assert len(list(own_cache.iterdir())) == 1
    for other in (
        cached_solve("sum_variance", 2, 6, disk_states=1),
        cached_solve("min_variance", 2, 6, prior=(2.0, 2.0), disk_states=1),
        cached_solve("min_variance", 2, 6, n_max=4, disk_states=1),
        cached_solve("min_variance", 3, 6, disk_states=1),
        cached_solve("min_squared_advantage", 2, 6, disk_states=1),
        cached_solve("min_squared_advantage", 2, 6, advantage_form="normalised", disk_states=1),
    ):
        assert other.values is not first.values
    assert len(list(own_cache.iterdir())) == 7


def test_cache_is_read_from_disk_in_a_later_process(own_cache):
    first = cached_solve("sum_max_reward", 2, 6, disk_states=1)
    tables.clear_memory()
    later = cached_solve("sum_max_reward", 2, 6, disk_states=1)
    assert later.seconds == first.seconds and later.values is not first.values
    np.testing.assert_array_equal(later.values, first.values)


def test_small_tables_stay_off_the_disk(own_cache):
    cached_solve("min_variance", 2, 6)
    assert not own_cache.exists()


def test_a_damaged_cached_file_is_solved_again_and_replaced(own_cache):
    first = cached_solve("min_variance", 2, 6, disk_states=1)
    (path,) = own_cache.iterdir()
    path.write_bytes(b"rubbish")
    tables.clear_memory()
    with pytest.warns(RuntimeWarning, match="solved again"):
        again = cached_solve("min_variance", 2, 6, disk_states=1)
    np.testing.assert_array_equal(again.values, first.values)
    np.testing.assert_array_equal(load_table(path).values, first.values)


def test_a_cache_folder_that_cannot_be_written_only_warns(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ROLLWISE_CACHE", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="ROLLWISE_CACHE"):
        assert cached_solve("min_variance", 2, 4, disk_states=1).value == pytest.approx(0.027778, abs=5.1e-7)
    with pytest.raises(RollwiseError, match="cannot be written"):
        save_table(solve("min_variance", 2, 4), tmp_path / "file" / "a.npz")


def test_memory_forgets_the_least_recently_used(monkeypatch):
    monkeypatch.setattr(tables, "MEMORY_BYTES", 400)
    first = cached_solve("min_variance", 2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cached_solve("sum_variance", 2, 4)
        assert cached_solve("min_variance", 2, 4).values is first.values
        cached_solve("sum_variance", 2, 6)
    assert cached_solve("min_variance", 2, 4).values is not first.values
