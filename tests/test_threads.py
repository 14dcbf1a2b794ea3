"""BLAS has one thread inside, and as many as before afterwards, whatever happens inside."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stagescope.core import threads


@pytest.fixture
def library(monkeypatch):
    """A library with five threads, in place of those of this process."""
    state = {"threads": 5}
    pair = (lambda: state["threads"], lambda n: state.update(threads=n))
    monkeypatch.setattr(threads, "_loaded", lambda: {"five": pair})
    return state


def test_one_inside_and_as_before_outside(library):
    with threads.one_blas_thread(), threads.one_blas_thread():
        assert threads.blas_threads() == library["threads"] == 1
    assert library["threads"] == 5
    with pytest.raises(KeyboardInterrupt), threads.one_blas_thread():
        raise KeyboardInterrupt
    assert library["threads"] == 5


def test_a_library_loaded_meanwhile(library, monkeypatch):
    both = threads._loaded()
    monkeypatch.setattr(threads, "_loaded", dict)
    with threads.one_blas_thread():
        monkeypatch.setattr(threads, "_loaded", lambda: both)
        threads.hold()
        assert library["threads"] == 1
    assert library["threads"] == 5


def test_an_interrupt_at_the_start(library, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    with monkeypatch.context() as pressed:
        pressed.setattr(threads, "_loaded", interrupted)
        with pytest.raises(KeyboardInterrupt), threads.one_blas_thread():
            raise AssertionError("not reached")
    with threads.one_blas_thread():
        assert library["threads"] == 1
    assert library["threads"] == 5


def test_two_libraries_that_share_their_threads(library, monkeypatch):
    (pair,) = threads._loaded().values()
    monkeypatch.setattr(threads, "_loaded", lambda: {"five": pair, "same": pair})
    with threads.one_blas_thread():
        assert library["threads"] == 1
    assert library["threads"] == 5


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/opt/lib/libopenblasp-r0.3.21.so", True),
        ("/usr/lib/openblas-pthread/libblas.so.3", True),
        ("/opt/my lib/libmkl_rt.so.2", True),
        ("/home/openblas/lib/libm.so.6", False),
        ("/home/me/openblas.csv", False),
    ],
)
def test_libraries_are_known_by_the_names_of_their_files(tmp_path, monkeypatch, path, found):
    pair = (lambda: 3, lambda n: None)
    (tmp_path / "maps").write_text(f"7f00-7f01 r-xp 00000000 08:01 99    {path}\n7f02-7f03 rw-p 00000000 00:00 0\n")
    monkeypatch.setattr(threads, "_MAPS", tmp_path / "maps")
    monkeypatch.setattr(threads, "_functions", lambda _: pair)
    assert threads._loaded() == ({Path(path): pair} if found else {})


def test_the_library_of_numpy_is_found():
    np.dot(np.ones(3), np.ones(3))
    found = threads.blas_threads()
    assert found is None or found >= 1
    assert found is not None or not threads._MAPS.exists()


def test_libraries_are_looked_for_again_after_another_was_loaded(monkeypatch):
    threads._blas_libraries.cache_clear()
    for loads in (5, 5, 6, None, None):
        monkeypatch.setattr(threads, "_loads", lambda loads=loads: loads)
        threads._loaded()
    assert threads._blas_libraries.cache_info().misses == 4
    threads._blas_libraries.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the loader is not asked")
def test_the_loader_counts_what_it_loads():
    code = "from stagescope.core.threads import _loads; before = _loads(); import numpy; "
    subprocess.run([sys.executable, "-c", f"{code}assert 0 < before < _loads()"], check=True)
