"""The one door to JAX: importing this module imports JAX, switches it to float64 and keeps its compile cache private.

Nothing else in the package imports JAX at module level, so the kernel path never pays for it.
"""

import os
from pathlib import Path

import jax
import jax.numpy as jnp

__all__ = ["jax", "jnp"]


def _cache_folder() -> Path:
    """Compiled code is executed when read back, so the folder must belong to this user alone."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "stagescope" / "jax"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder


def _configure() -> None:
    jax.config.update("jax_enable_x64", True)
    try:
        folder = _cache_folder()
    except (OSError, RuntimeError):
        return  # no home to write to: compile anew each time
    if folder.stat().st_uid == os.getuid():
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


_configure()
