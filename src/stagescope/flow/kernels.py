"""The one door to Numba's cache: compiled kernels are kept in a private folder, and checked before they are loaded.

Numba keeps pickles and machine code, and executes both. By default it keeps them beside the source and reads them unchecked.
"""

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, MappingProxyType, ModuleType
from typing import Any

import numba
import numpy as np
from numba import extending
from numba.core import caching
from numba.core.ccallback import CFunc
from numba.core.runtime.nrt import rtsys
from numba.core.sigutils import normalize_signature

import stagescope
from stagescope.core.caches import cache_folder, processor, read_entry, say, write_entry

intrinsic: Any = extending.intrinsic
"""`numba.extending.intrinsic`: a function that writes its own machine code. Callers leave out its first argument."""

LINEAR_ALGEBRA = (b"numba_xx", b"numba_ez")
"""How the functions are called by which Numba's machine code reaches BLAS and LAPACK, which are SciPy's."""


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`; with `cache` its machine code is kept in the private cache of this user."""

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(**options)(function)
        if cache and hasattr(dispatcher, "enable_caching"):  # not so with NUMBA_DISABLE_JIT
            dispatcher._cache = cache_of(function, options)
        return dispatcher

    return compiled


def cfunc(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.cfunc`, kept in the private cache of this user."""

    def compiled(function: Callable[..., Any]) -> Any:
        callback: Any = CFunc(function, normalize_signature(signature), locals={}, options={})
        callback._cache = cache_of(function)
        callback.compile()
        return callback

    return compiled


def cache_of(function: Callable[..., Any], options: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Where the machine code of a function is kept; nowhere if there is no private folder, or if Numba changed its ways."""
    if not _KNOWN or cache_folder("numba") is None:
        return caching.NullCache()
    return _KernelCache(function, options)


class _Place(caching.UserProvidedCacheLocator):
    """A folder for each source file, known by its bytes, in one for each version of this package and of Numba and each kind of
    processor: another copy of the package, such as a fresh clone, finds what this one compiled."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno
        made_by = f"{stagescope.__version__}-{numba.__version__}-{processor()}"
        name = f"{Path(file).stem}-{self.get_source_stamp()[:16]}"
        self._cache_path = str((cache_folder("numba") or Path()) / made_by / name)

    def get_source_stamp(self) -> Any:
        status = os.stat(self._py_file)
        return _digest(self._py_file, status.st_mtime_ns, status.st_size)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Place":
        return cls(py_func, py_file)

    def ensure_cache_path(self) -> None:
        """It is made when the first file is written."""


@cache
def _digest(file: str, changed: int, size: int) -> str:
    """Of the bytes of a file; read again when it was changed."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


class _Kept(caching.CompileResultCacheImpl):
    _locator_classes = [_Place]


class _Files(caching.IndexDataCacheFile):
    """Numba's files, each with a seal that is checked before anything is unpickled.

    Index and machine code are separate files, and either may be of another process or left over. So the machine code says
    itself what it was made from and for which signature.
    """

    def __init__(self, place: str, name: str, stamp: Any, function: Any, options: Any) -> None:
        super().__init__(place, name, stamp)
        self._source, self.linear_algebra = (function, options), False

    @cached_property
    def _stamp(self) -> tuple[Any, str]:
        """The source file, and the code in memory, which may be older. Found when first used: a kernel may call a later one."""
        stamp = hashlib.sha256()
        for part in _made_from(*self._source, set()):
            stamp.update(part.encode() + b"\0")
        return self._source_stamp, stamp.hexdigest()

    def load(self, key: Any) -> Any:
        entry = super().load(key)
        return entry[2] if entry is not None and tuple(entry[:2]) == (self._stamp, key) else None

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (self._stamp, key, data))

    def _load_index(self) -> dict[Any, str]:
        data = read_entry(Path(self._index_path))
        try:
            stamp, overloads = (None, {}) if data is None else pickle.loads(data)
        except Exception:  # of another version: it is written anew
            return {}
        return overloads if stamp == self._stamp else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        write_entry(Path(self._index_path), self._dump((self._stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        data = read_entry(Path(self._data_path(name)))
        if data is None:
            raise FileNotFoundError(name)  # Numba compiles it then
        self.linear_algebra = any(name in data for name in LINEAR_ALGEBRA)
        return pickle.loads(data)

    def _save_data(self, name: str, data: Any) -> None:
        write_entry(Path(self._data_path(name)), self._dump(data))


def _made_from(function: Any, options: Mapping[str, Any], visited: set[Any]) -> Iterator[str]:
    """Code and options of a function, and what it names: numbers, which are compiled in, and kernels it calls, of any file.

    What is named may be in the function's own file, or in a module that it names too: `loops.add_rows`.
    """
    if function in visited:
        return
    visited.add(function)
    yield from (f"{name} {sorted(value) if isinstance(value, set) else value}" for name, value in options.items())
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
        yield f"{code.co_code.hex()} {[const for const in code.co_consts if not isinstance(const, CodeType)]} {code.co_names}"
        scope = function.__globals__
        spaces = [scope, *(vars(scope[name]) for name in code.co_names if isinstance(scope.get(name), ModuleType))]
        for named in (space.get(name) for name in code.co_names for space in spaces):
            if hasattr(named, "py_func"):
                yield from _made_from(named.py_func, named.targetoptions, visited)
            elif hasattr(named, "_defn"):  # an intrinsic: what writes its machine code
                yield from _made_from(named._defn, {}, visited)
            elif isinstance(named, int | float | complex | str | tuple | np.ndarray | np.generic):
                yield repr(named.tolist() if isinstance(named, np.ndarray) else named)


_KNOWN = all(hasattr(caching.IndexDataCacheFile, name) for name in vars(_Files) if name.lstrip("_").startswith(("load", "save")))
"""Whether Numba still reads and writes through the methods that are replaced here."""


class _KernelCache(caching.FunctionCache):
    _impl_class = _Kept

    def __init__(self, function: Any, options: Mapping[str, Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp, function, options)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """None, so that it is compiled, where what is kept cannot be used, such as after another library was replaced.

        Machine code needs Numba's memory only. Numba would make ready to compile first, with `refresh`: that loads most of
        itself and scipy.linalg, a third of the time of a small run. It also checks that SciPy fits, for kernels that call it.
        """
        try:
            rtsys.initialize(target_context)
            code = self._cache_file.load(self._index_key(sig, target_context.codegen()))
            if code is not None and self._cache_file.linear_algebra:
                target_context.refresh()
            return None if code is None else self._impl.rebuild(target_context, code)
        except Exception as error:
            say(f"the compiled {self._py_func.__name__} in {self._cache_path} cannot be used ({error}); it is made again")
            return None
