"""Durable files: whole or not at all, errors as sentences, locks that end with their owner."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stagescope.core.errors import StoreError
from stagescope.runs import files


def test_replace_writes_whole_files_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "file"
    for data in (b"first", b"", bytes(range(256)) * 100):
        files.replace(path, data)
        assert path.read_bytes() == data
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_replace_that_breaks_keeps_the_old_bytes(tmp_path, monkeypatch, call):
    path = tmp_path / "file"
    files.replace(path, b"old")

    def broken(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, broken)
        with pytest.raises(StoreError, match="file: No space left on device: the disk is full"):
            files.replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    files.replace(path, b"new")
    assert path.read_bytes() == b"new"


def test_digest_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert files.sha256(tmp_path / "file") == files.digest(b"abc")
    assert files.digest(b"abc").startswith("ba7816bf")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space and resume"),
        (errno.EDQUOT, "free some space and resume"),
        (errno.EFBIG, "raise it and resume"),
        (errno.EACCES, "choose another folder"),
        (errno.EROFS, "read-only"),
        (errno.ENOENT, "missing"),
        (errno.ELOOP, "it is a link"),
        (errno.EIO, "try again"),
    ],
)
def test_errors_name_the_file_and_the_remedy(number, remedy):
    with pytest.raises(StoreError, match=remedy) as caught, files.store_errors(Path("run")):
        raise OSError(number, os.strerror(number), "run/data.zarr/Y/c/0")
    assert str(caught.value).startswith(f"run/data.zarr/Y/c/0: {os.strerror(number)}")


def test_an_error_without_a_file_names_the_folder():
    with pytest.raises(StoreError, match="run: No space left"), files.store_errors(Path("run")):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_lock_refuses_a_second_writer(tmp_path):
    lock = files.Lock(tmp_path)
    assert files.locked(tmp_path)
    with pytest.raises(StoreError, match="another process is writing"):
        files.Lock(tmp_path)
    lock.release()
    assert not files.locked(tmp_path)
    files.Lock(tmp_path).release()


def test_releasing_twice_closes_nothing_else(tmp_path):
    lock = files.Lock(tmp_path)
    lock.release()
    with open(tmp_path / "other", "w") as other:  # takes over the number of the closed handle
        lock.release()
        other.write("still open")


def test_lock_ends_with_a_killed_process(tmp_path):
    code = "import sys, pathlib, time; from stagescope.runs.files import Lock; lock = Lock(pathlib.Path(sys.argv[1])); "
    code += "print('locked', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        assert files.locked(tmp_path)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    assert not files.locked(tmp_path)


def test_asking_never_stops_a_writer_and_never_looks_like_one(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 20.0)  # a busy machine may stop a thread that asks while it holds the lock
    done, seen = threading.Event(), []

    def ask():
        while not done.is_set():
            seen.append(files.locked(tmp_path))

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for thread in askers:
        thread.start()
    for thread in askers:
        thread.join(0.1)
    assert not any(seen)
    for _ in range(50):
        files.Lock(tmp_path).release()
    done.set()
    for thread in askers:
        thread.join()
