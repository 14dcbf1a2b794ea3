"""BLAS has one thread inside, and as many as before afterwards, whatever happens inside."""

import numpy as np
import pytest

from stagescope import threads


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


def test_the_library_of_numpy_is_found():
    np.dot(np.ones(3), np.ones(3))
    found = threads.blas_threads()
    assert found is None or found >= 1
    assert found is not None or not threads._MAPS.exists()
