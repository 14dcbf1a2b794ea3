"""Shared fixtures: small runs, and a private place for caches."""

import gc
import os

os.environ.setdefault("STAGESCOPE_FRESH", "1")  # tests change functions inside readings, which no key of a cache knows
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import pytest
from hypothesis import settings

from stagescope.core.caches import VARIABLE, cache_folder

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("fixed")

gc.set_threshold(20_000, 20, 20)  # else a tenth of the time is spent looking for cycles among a million objects of JAX and Numba


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: no need to look through them."""
    gc.collect()
    gc.freeze()


cache_folder("numba")  # a temporary one, where there has to be one, is that of all tests
CACHE = os.environ.get(VARIABLE)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Modules that are imported later would compile all their kernels again, into the folder that a test has left behind."""
    if os.environ.get(VARIABLE) != CACHE:
        left = os.environ.pop(VARIABLE, None)
        pytest.fail(f"the test left {VARIABLE}={left} behind")
