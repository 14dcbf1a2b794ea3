"""Independent pieces of work in several processes."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from stagescope.errors import StagescopeError

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

    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_quiet_end)
    try:
        waiting = {pool.submit(work, task): number for number, task in enumerate(tasks)}
        for done in as_completed(waiting):
            yield waiting[done], done.result()
    except BrokenProcessPool:
        raise StagescopeError("a worker process ended before its run was done (out of memory?); take fewer workers") from None
    except BaseException:  # Ctrl-C above all: runs under way are of no use any more
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _quiet_end() -> None:
    """Ctrl-C ends a worker at once and without a traceback; the main process reports it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
