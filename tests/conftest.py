"""Shared fixtures: small runs, and a private place for caches."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("fixed")
