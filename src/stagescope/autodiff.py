"""The one door to JAX: importing this module imports JAX, switches it to float64 and keeps its compile cache private.

Nothing else in the package imports JAX at module level, so the kernel path never pays for it.
"""

import jax
import jax.numpy as jnp

from stagescope.runs.files import private_cache

__all__ = ["jax", "jnp"]


def _configure() -> None:
    jax.config.update("jax_enable_x64", True)
    folder = private_cache("jax")  # compiled code is executed when read back; without a private place compile anew each time
    if folder is not None:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


_configure()
