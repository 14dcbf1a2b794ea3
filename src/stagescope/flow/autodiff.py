"""The one door to JAX: importing this module imports JAX, switches it to float64 and keeps its compile cache private.

Nothing else in the package imports JAX at module level, so the kernel path never pays for it.
"""

from pathlib import Path

import jax
import jax.numpy as jnp

from stagescope.core.caches import cache_folder, processor, read_entry, write_entry

__all__ = ["jax", "jnp"]


class CompiledCode:
    """What JAX compiled, checked before JAX sees it: compiled code is executed when it is read back."""

    def __init__(self, folder: Path) -> None:
        self._path = folder

    def get(self, key: str) -> bytes | None:
        return read_entry(self._path / key)

    def put(self, key: str, value: bytes) -> None:
        write_entry(self._path / key, value)


def _keep(cache: CompiledCode) -> bool:
    """Hand JAX the cache; False if JAX has no such place any more: then everything is compiled anew each time."""
    try:
        from jax._src import compilation_cache as keeper
    except ImportError:
        return False
    if not all(hasattr(keeper, name) for name in ("_cache", "_cache_initialized", "_get_cache")):
        return False
    keeper._cache, keeper._cache_initialized = cache, True  # pyright: ignore[reportAttributeAccessIssue]
    return True


jax.config.update("jax_enable_x64", True)
_folder = cache_folder("jax")
if _folder is not None and _keep(CompiledCode(_folder / processor())):
    jax.config.update("jax_compilation_cache_dir", str(_folder / processor()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
