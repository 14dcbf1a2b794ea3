"""The one door to Numba's cache: compiled kernels are kept in a private folder, and checked before they are loaded.

Numba keeps pickles and machine code, and executes both. By default it keeps them beside the source and reads them unchecked.
"""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature

import stagescope
from stagescope.caches import cache_folder, processor, read_entry, say, write_entry


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`; with `cache` its machine code is kept in the private cache of this user."""

    def compiled(function: Callable[..., Any]) -> Any:
        made: Any = numba.njit(**options)(function)
        if cache and hasattr(made, "enable_caching"):  # not so with NUMBA_DISABLE_JIT
            made._cache = cache_of(function)
        return made

    return compiled


def cfunc(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.cfunc`, kept in the private cache of this user."""

    def compiled(function: Callable[..., Any]) -> Any:
        made: Any = CFunc(function, normalize_signature(signature), locals={}, options={})
        made._cache = cache_of(function)
        made.compile()
        return made

    return compiled


def cache_of(function: Callable[..., Any]) -> Any:
    """Where the machine code of a function is kept; nowhere if there is no private folder, or if Numba changed its ways."""
    if not _KNOWN or cache_folder("numba") is None:
        return caching.NullCache()
    return _KernelCache(function)


class _Place(caching.UserProvidedCacheLocator):
    """A folder for each source folder, in one for each version of this package and of Numba and each kind of processor."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno
        made_by = f"{stagescope.__version__}-{numba.__version__}-{processor()}"
        self._cache_path = str((cache_folder("numba") or Path()) / made_by / self.get_suitable_cache_subpath(file))

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Place":
        return cls(py_func, py_file)

    def ensure_cache_path(self) -> None:
        """It is made when the first file is written."""


class _Kept(caching.CompileResultCacheImpl):
    _locator_classes = [_Place]


class _Files(caching.IndexDataCacheFile):
    """Numba's files, each with a seal that is checked before anything is unpickled."""

    def _load_index(self) -> dict[Any, str]:
        data = read_entry(Path(self._index_path))
        try:
            stamp, overloads = (None, {}) if data is None else pickle.loads(data)
        except Exception:  # of another version: it is written anew
            return {}
        return overloads if stamp == self._source_stamp else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        write_entry(Path(self._index_path), self._dump((self._source_stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        data = read_entry(Path(self._data_path(name)))
        if data is None:
            raise FileNotFoundError(name)  # Numba compiles it then
        return pickle.loads(data)

    def _save_data(self, name: str, data: Any) -> None:
        write_entry(Path(self._data_path(name)), self._dump(data))


_KNOWN = all(hasattr(caching.IndexDataCacheFile, name) for name in vars(_Files) if name.startswith(("_load", "_save")))
"""Whether Numba still reads and writes through the methods that are replaced here."""


class _KernelCache(caching.FunctionCache):
    _impl_class = _Kept

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """None, so that it is compiled, where what is kept cannot be used, such as after another library was replaced."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            say(f"the compiled {self._py_func.__name__} in {self._cache_path} cannot be used ({error}); it is made again")
            return None
