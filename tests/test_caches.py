"""Caches: entries come back whole or not at all, in a folder of this user alone."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.core import caches
from stagescope.core.caches import cache_folder, processor, read_entry, write_entry


@pytest.fixture(autouse=True)
def own_place(tmp_path, monkeypatch):
    monkeypatch.setenv(caches.VARIABLE, "")  # not delenv: what is set in a test would stay where there was nothing
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@given(st.binary(max_size=200), st.integers(0, 10**6), st.integers(1, 255))
def test_an_entry_with_a_changed_byte_is_never_served(tmp_path_factory, body, place, change):
    path = tmp_path_factory.mktemp("entry") / "entry"
    write_entry(path, body)
    assert read_entry(path) == body
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= change
    path.write_bytes(data)
    assert read_entry(path) is None
    assert not path.exists()


@pytest.mark.parametrize("left", [0, 1, 31, 32, 40])
def test_an_entry_cut_short_is_removed_and_a_line_says_so(tmp_path, capsys, left):
    path = tmp_path / "entry"
    write_entry(path, b"twenty bytes of data")
    path.write_bytes(path.read_bytes()[:left])
    assert read_entry(path) is None
    assert capsys.readouterr().err == f"stagescope: the cache file {path} is damaged; it is removed and made again\n"
    assert read_entry(path) is None
    assert not capsys.readouterr().err


def test_an_entry_under_another_name_is_not_served(tmp_path):
    write_entry(tmp_path / "one", b"data")
    (tmp_path / "one").rename(tmp_path / "other")
    assert read_entry(tmp_path / "other") is None


def test_what_cannot_be_written_is_not_kept(tmp_path):
    (tmp_path / "file").write_text("")
    write_entry(tmp_path / "file" / "entry", b"data")
    (tmp_path / "entry").mkdir()
    write_entry(tmp_path / "entry", b"data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["entry", "file"]


def test_the_folder_belongs_to_this_user_alone(tmp_path):
    (tmp_path / "cache" / "stagescope").mkdir(parents=True, mode=0o777)
    folder = cache_folder("levels")
    assert folder == tmp_path / "cache" / "stagescope" / "levels"
    for each in (folder, folder.parent):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700


def test_a_folder_of_the_users_choice(tmp_path, monkeypatch):
    monkeypatch.setenv(caches.VARIABLE, str(tmp_path / "own"))
    assert cache_folder("jax") == tmp_path / "own" / "stagescope" / "jax"


def test_the_current_folder_is_no_place_for_a_cache(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(caches.VARIABLE, ".")
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder("jax") == tmp_path / "home" / ".cache" / "stagescope" / "jax"


@pytest.mark.parametrize("wrong", ["a file", "of another user"])
def test_without_a_private_place_a_temporary_one_is_shared_with_workers(tmp_path, monkeypatch, capsys, wrong):
    if wrong == "a file":
        (tmp_path / "cache").write_text("")
    else:
        real = os.getuid()
        seen = iter([real + 1])
        monkeypatch.setattr(os, "getuid", lambda: next(seen, real))
    folder = cache_folder("numba")
    said = capsys.readouterr().err
    assert said.startswith("stagescope: no cache can be kept (")
    assert said.count("\n") == 1
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cache_folder("levels").parent == folder.parent == Path(os.environ[caches.VARIABLE]) / "stagescope"
    assert not capsys.readouterr().err
    caches._remove(folder.parent.parent, os.getpid() + 1)
    assert folder.exists()
    caches._remove(folder.parent.parent, os.getpid())
    assert not folder.exists()


@pytest.mark.parametrize("others", [0, 0o022])
def test_a_cache_that_can_only_be_read_is_read(tmp_path, monkeypatch, others):
    """Of all kinds; what is made anew goes into the temporary one. One that others may write to is not trusted."""
    kept = {kind: Path(str(cache_folder(kind)), "some", "entry") for kind in ("numba", "levels")}
    for kind, path in kept.items():
        write_entry(path, kind.encode())
    access = os.access
    for path in kept.values():
        path.parent.chmod(0o500)
    (tmp_path / "cache" / "stagescope").chmod(0o500 | others)
    monkeypatch.setattr(Path, "chmod", lambda *_: None)
    monkeypatch.setattr(os, "access", lambda path, mode: (tmp_path / "cache") not in Path(path).parents and access(path, mode))
    for kind, path in kept.items():
        here = Path(str(cache_folder(kind)), "some", "entry")
        assert tmp_path not in here.parents
        assert read_entry(here) == (None if others else kind.encode())
        write_entry(here, b"new")
        assert read_entry(here) == b"new"
        assert read_entry(path) == kind.encode()
    temporary = Path(os.environ[caches.VARIABLE])
    caches._remove(temporary, os.getpid())
    assert all(path.exists() for path in kept.values())
    assert not temporary.exists()


def test_no_place_at_all(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("")

    def full(**_):
        raise OSError("no room")

    monkeypatch.setattr(caches.tempfile, "mkdtemp", full)
    assert cache_folder("numba") is None


def test_a_processor_has_one_name():
    assert len(processor()) == 16
