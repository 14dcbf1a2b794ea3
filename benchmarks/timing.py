"""CPU seconds of work that is given as functions: the machine may be shared, so minima count, and sides alternate."""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

Work = Callable[[], object]
Name = TypeVar("Name")


def seconds(work: Work) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def least(work: Work, times: int = 5) -> float:
    """The least CPU seconds of some calls."""
    return min(seconds(work) for _ in range(times))


def alternating(works: Mapping[Name, Work], rounds: int, before: Mapping[Name, Work] | None = None) -> dict[Name, float]:
    """The least CPU seconds of each, one after the other in every round; what is done `before` each is not counted."""
    found = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            if before is not None:
                before[name]()
            found[name] = min(found[name], seconds(work))
    return found
