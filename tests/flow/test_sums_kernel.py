"""Sums over a solver's vectors: those of the definition, taken by every vector made like the first."""

import ctypes

import numpy as np
import pytest

from stagescope.flow import cvode
from stagescope.flow.cvode_kernel import dot, quicken, weighted_rms


@pytest.mark.parametrize("size", [1, 2, 17, 192])
def test_sums_of_the_definition(size):
    x, w = np.random.default_rng(size).normal(size=(2, size))
    assert dot(x, w) == pytest.approx(x @ w, rel=1e-13, abs=1e-13)
    assert weighted_rms(x, w) == pytest.approx(np.sqrt(np.mean((x * w) ** 2)), rel=1e-14)


def test_a_vector_and_its_clones_use_them():
    """1 + 1e-16 + ... one by one stays 1; in parts it does not."""
    library, context = cvode.functions(), ctypes.c_void_p()
    library.SUNContext_Create(0, ctypes.byref(context))
    x = np.array([1.0] + [1e-8] * 191)
    vector = library.N_VMake_Serial(x.size, x.ctypes.data, context)
    product = library.N_VDotProd
    product.restype, product.argtypes = ctypes.c_double, [ctypes.c_void_p] * 2
    before = product(vector, vector)
    quicken(library, vector)
    assert product(vector, vector) == dot(x, x) != before
    library.N_VClone.restype = ctypes.c_void_p
    clone = library.N_VClone(ctypes.c_void_p(vector))
    library.N_VScale(ctypes.c_double(1.0), ctypes.c_void_p(vector), ctypes.c_void_p(clone))
    assert product(clone, clone) == dot(x, x)
    for each in (vector, clone):
        library.N_VDestroy(each)
    library.SUNContext_Free(ctypes.byref(context))
