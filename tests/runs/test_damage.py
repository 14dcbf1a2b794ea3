"""Damage is never drawn: any changed byte, any shortened or missing file of a run is seen by verify and by load."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from stagescope.core.errors import DamagedRun, NotARun, StoreError
from stagescope.runs import store
from stagescope.runs.manifest import read as read_manifest
from tests.runs import samples


def committed(folder: Path) -> dict[Path, int]:
    """Every file of a run with the number of its bytes that count."""
    manifest = read_manifest(folder)
    sizes = {path: path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    return sizes | {folder / "events.jsonl": manifest.events_bytes}


def assert_seen(folder: Path, path: Path) -> None:
    """Verify names the file, and load refuses."""
    problems = store.verify(folder)
    assert any(str(path) in problem for problem in problems), f"{path}: {problems}"
    with pytest.raises(StoreError, match=path.name):
        store.load(folder)


def flip(folder: Path, times: int, seed: int) -> set[Path]:
    """Change one random byte of the run, look, change it back; so many times. Returns the files that were hit."""
    rng = np.random.default_rng(seed)
    sizes = committed(folder)
    hit = set()
    for _ in range(times):
        path = list(sizes)[rng.integers(len(sizes))]
        good = path.read_bytes()
        bad = bytearray(good)
        bad[rng.integers(sizes[path])] ^= int(rng.integers(1, 256))
        path.write_bytes(bad)
        assert_seen(folder, path)
        path.write_bytes(good)
        hit.add(path)
    return hit


@pytest.mark.long
def test_200_flipped_bytes_of_a_finished_run(tmp_path):
    folder = samples.finished(tmp_path / "run")
    assert flip(folder, 200, seed=1) == set(committed(folder))
    assert samples.equal(store.load(folder), 10)


def test_50_flipped_bytes_of_an_unfinished_run(tmp_path):
    folder = samples.unfinished(tmp_path / "run")
    assert flip(folder, 50, seed=2) >= {folder / "manifest.json", folder / "events.jsonl"}
    assert samples.equal(store.load(folder), 8)


def test_every_bit_of_one_chunk_and_of_the_checkpoint(tmp_path):
    folder = samples.unfinished(tmp_path / "run")
    for path in (folder / "data.zarr/loss/c/1", folder / str(read_manifest(folder).checkpoint)):
        good = path.read_bytes()
        for place in range(0, len(good), 7):
            path.write_bytes(good[:place] + bytes([good[place] ^ (1 << place % 8)]) + good[place + 1 :])
            assert_seen(folder, path)
        path.write_bytes(good)
    assert store.verify(folder) == []


@pytest.mark.long
@pytest.mark.parametrize("make", [samples.finished, samples.unfinished])
def test_shortened_lengthened_and_missing_files(tmp_path, make):
    folder = make(tmp_path / "run")
    for path, size in committed(folder).items():
        good = path.read_bytes()
        for bad in (good[: size - 1], good[: size // 2], b""):
            path.write_bytes(bad)
            assert_seen(folder, path)
        if size == len(good):
            path.write_bytes(good + b"\0")
            assert_seen(folder, path)
        path.unlink()
        if path.name == "manifest.json":
            for look in (store.verify, store.load):
                with pytest.raises(NotARun):
                    look(folder)
        else:
            assert_seen(folder, path)
        path.mkdir()
        if path.name != "manifest.json":
            assert_seen(folder, path)
        path.rmdir()
        path.write_bytes(good)
    assert store.verify(folder) == []


def test_files_of_two_runs_do_not_mix(tmp_path):
    """Each file is whole and well formed, but belongs to another run."""
    one, two = samples.finished(tmp_path / "one"), samples.finished(tmp_path / "two", frames=7)
    for name in ("data.zarr/t/c/2", "data.zarr/t/zarr.json", "events.jsonl"):
        good = (one / name).read_bytes()
        shutil.copy(two / name, one / name)
        assert_seen(one, one / name)
        (one / name).write_bytes(good)
    shutil.copy(two / "manifest.json", one / "manifest.json")
    assert store.verify(one)


def test_uncommitted_events_are_not_damage_but_are_dropped(tmp_path):
    folder = samples.unfinished(tmp_path / "run")
    log = folder / "events.jsonl"
    log.write_bytes(log.read_bytes()[: read_manifest(folder).events_bytes] + b'{"event": "cut sh')
    assert store.verify(folder) == []
    assert samples.equal(store.load(folder), 8)


def test_a_file_where_a_folder_was(tmp_path):
    folder = samples.finished(tmp_path / "run")
    shutil.rmtree(folder / "data.zarr/W")
    (folder / "data.zarr/W").touch()
    assert f"{folder / 'data.zarr/W/zarr.json'}: Not a directory" in store.verify(folder)
    with pytest.raises(DamagedRun, match=r"data\.zarr/W/"):
        store.load(folder)


def test_nothing_of_a_damaged_run_is_read(tmp_path):
    folder = samples.finished(tmp_path / "run")
    (folder / "data.zarr/A/c/0").write_bytes(b"")
    with pytest.raises(DamagedRun, match=r"A/c/0: damaged, .*restore the file from a copy, or `stagescope verify"):
        store.load(folder)
