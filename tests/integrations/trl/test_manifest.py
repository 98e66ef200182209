"""A checkpoint that lacks a file, or holds a damaged one or that of another step, is named and passed over."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rollwise.integrations.trl import manifest
from rollwise.integrations.trl.manifest import MANIFEST, STATE, digest, fault_of, last_whole, write_manifest

FILES = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "rollwise_state_0.pt", "shards/0.bin")


def save(folder: Path, step: int) -> Path:
    """A checkpoint of files of equal lengths, whose content tells its step."""
    path = folder / f"checkpoint-{step}"
    for name in FILES:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(bytes([step]) * 100)
    write_manifest(path, step)
    (path / STATE).write_text(json.dumps({"global_step": step}))
    return path


def remove(path: Path) -> None:
    path.unlink()


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def mix(path: Path) -> None:
    shutil.copy(path.parent.parent / "checkpoint-2" / path.name, path)


def become(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text)


def occupy(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "damage", "fault"),
    [
        *((name, remove, f"{name} is missing") for name in (*FILES[:5], STATE, MANIFEST)),
        *((name, halve, f"{name} has 50 bytes of 100") for name in FILES),
        *((name, mix, f"{name} is not the file that was saved") for name in FILES[:5]),
        *((name, halve, f"{name} is damaged") for name in (STATE, MANIFEST)),
        *((name, become("{}"), f"{name} is damaged") for name in (STATE, MANIFEST)),
        *((name, become("[" * 100_000), f"{name} is damaged") for name in (STATE, MANIFEST)),
        (MANIFEST, become('{"format": 1, "step": 4, "files": {"optimizer.pt": 3}}'), f"{MANIFEST} is damaged"),
        (STATE, become('{"global_step": true}'), f"{STATE} is damaged"),
        (STATE, mix, f"{STATE} is of step 2, its other files of step 4"),
        (STATE, occupy, f"{STATE} cannot be read (Is a directory)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "by",
)
def test_what_is_wrong_is_named_and_the_one_before_is_taken(
    tmp_path: Path, name: str, damage: Callable[[Path], object], fault: str
) -> None:
    before, last = save(tmp_path, 2), save(tmp_path, 4)
    assert last_whole(tmp_path) == (last, [])
    damage(last / name)
    assert fault_of(last) == fault
    assert last_whole(tmp_path) == (before, [f"checkpoint-4 is passed over: {fault}"])


def test_numbers_are_read_as_numbers_and_other_names_are_left_alone(tmp_path: Path) -> None:
    for step in (2, 10):
        save(tmp_path, step)
    shutil.copytree(tmp_path / "checkpoint-2", tmp_path / "checkpoint-best")
    shutil.copytree(tmp_path / "checkpoint-2", tmp_path / "checkpoint-12")
    found, passed_over = last_whole(tmp_path)
    assert found == tmp_path / "checkpoint-10"
    assert passed_over == ["checkpoint-12 is passed over: it is of step 2"]
    assert last_whole(tmp_path / "nowhere") == (None, [])


def test_a_checkpoint_of_another_trainer_is_taken_only_where_that_is_allowed(tmp_path: Path) -> None:
    path = save(tmp_path, 2)
    (path / MANIFEST).unlink()
    assert fault_of(path, stock=True) == f"{MANIFEST} is missing", "rollwise's own state is in it"
    (path / "rollwise_state_0.pt").unlink()
    assert (fault_of(path, stock=True), fault_of(path)) == (None, f"{MANIFEST} is missing")


def test_of_a_long_file_the_ends_and_pieces_between_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "PIECE", 4)
    monkeypatch.setattr(manifest, "PIECES", 3)
    content = bytearray(range(100))
    (tmp_path / "file").write_bytes(content)
    whole = digest(tmp_path / "file")
    for place, seen in ((0, True), (20, False), (49, True), (99, True)):
        changed = bytearray(content)
        changed[place] ^= 1
        (tmp_path / "file").write_bytes(changed)
        assert (digest(tmp_path / "file") != whole) is seen
