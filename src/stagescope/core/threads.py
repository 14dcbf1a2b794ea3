"""One BLAS thread while parameters move: sums in another order differ in their last bits, and these matrices are small."""

import ctypes
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

from stagescope.core.errors import StagescopeError

_FUNCTIONS = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)
"""How libraries are asked for their number of threads, and told it."""
_LIBRARIES = re.compile(r"[^/]*(blas|mkl_rt|blis)[^/]*\.so[^/]*")
"""Names of files that may have them; folders may be called anything."""
_Functions = tuple[Callable[[], int], Callable[[int], None]]
_MAPS = Path("/proc/self/maps")

_before: dict[Path, tuple[Callable[[int], None], int]] = {}
"""How each library is told its threads, and how many it had before the first of the runs under way began."""
_running = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One thread in every BLAS that is loaded; afterwards each has as many as before."""
    global _running
    _running += 1
    try:
        hold()
        yield
    finally:
        _running -= 1
        while _before and not _running:  # the last one first: two libraries may share their threads
            _, (put, threads) = _before.popitem()
            put(threads)


def hold() -> None:
    """Bring libraries to one thread that were loaded since the run began."""
    for path, (get, put) in _loaded().items():
        if path not in _before:
            _before[path] = put, get()
            put(1)


def blas_threads() -> int | None:
    """The most threads that a loaded BLAS uses now; None where no library can be asked, as on systems other than Linux."""
    return max((get() for get, _ in _loaded().values()), default=None)


def _loaded() -> dict[Path, _Functions]:
    """The functions of every BLAS library of this process that can be asked."""
    return _blas_libraries(_MAPS, _loads() or object())


class _Loaded(ctypes.Structure):
    """How the loader describes a library, up to the number of all that were ever loaded."""

    _fields_ = [("addr", ctypes.c_void_p), ("name", ctypes.c_char_p), ("phdr", ctypes.c_void_p), ("phnum", ctypes.c_uint16)]
    _fields_ += [("adds", ctypes.c_ulonglong)]


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Loaded), ctypes.c_size_t, ctypes.POINTER(ctypes.c_ulonglong))
def _look(info, size, found):  # noqa: ANN001, ANN202 (the loader calls it)
    found[0] = info[0].adds if size >= ctypes.sizeof(_Loaded) else 0
    return 1


def _loads() -> int | None:
    """How many libraries were loaded so far, which takes microseconds; None where the loader cannot be asked."""
    counter = ctypes.c_ulonglong()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).dl_iterate_phdr(_look, ctypes.byref(counter))
    return counter.value or None


@lru_cache(maxsize=1)
def _blas_libraries(maps: Path, loads: object) -> dict[Path, _Functions]:
    """They are looked for again when `loads`, the number of libraries that were loaded, is another one."""
    try:
        lines = os.fsdecode(maps.read_bytes()).splitlines()
    except OSError:
        return {}
    names = {line.split(maxsplit=5)[-1] for line in lines if ".so" in line}  # compiled code has thousands of lines
    paths = [Path(name) for name in sorted(names) if _LIBRARIES.fullmatch(name.rpartition("/")[2])]
    by_path = {path: _functions(path) for path in paths}
    return {path: functions for path, functions in by_path.items() if functions is not None}


@cache
def _functions(path: Path) -> _Functions | None:
    with suppress(OSError):
        library = ctypes.CDLL(str(path))
        for get, put in _FUNCTIONS:
            if hasattr(library, get) and hasattr(library, put):
                return getattr(library, get), getattr(library, put)
    return None


Task = TypeVar("Task")
Result = TypeVar("Result")


def results(work: Callable[[Task], Result], tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, Result]]:
    """Results with the numbers of their tasks, as they come; `work` is a function of a module, and tasks start in order."""
    if workers == 1 or len(tasks) < 2:
        for number, task in enumerate(tasks):
            yield number, work(task)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    earlier = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_quiet_end)
    try:
        waiting = {pool.submit(work, task): number for number, task in enumerate(tasks)}
        for done in as_completed(waiting):
            yield waiting[done], done.result()
    except BrokenProcessPool:
        raise StagescopeError("a worker process ended before its run was done (out of memory?); take fewer workers") from None
    except BaseException:  # Ctrl-C above all: runs under way are of no use any more
        for child in set(multiprocessing.active_children()) - earlier:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _quiet_end() -> None:
    """Ctrl-C ends a worker at once and without a traceback; the main process reports it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
