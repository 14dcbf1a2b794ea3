"""Sizes are estimated from shapes: what is too large is refused before it is made."""

import math
import os
import resource
import shutil
from collections.abc import Mapping
from pathlib import Path

from stagescope.core.errors import InputError


def _machine() -> int:
    """Bytes that this process may use: those of the machine, of its container, or of its own limit, whichever is least."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    sizes += [limit for limit in resource.getrlimit(resource.RLIMIT_AS) if limit != resource.RLIM_INFINITY]
    for place in ("memory.max", "memory/memory.limit_in_bytes"):  # control groups of version 2 and 1
        path = Path("/sys/fs/cgroup", place)
        text = path.read_text().strip() if os.access(path, os.R_OK) else ""
        sizes += [int(text)] if text.isdigit() else []
    return min(sizes)


MACHINE = _machine()
LIMIT = min(2 * 2**30, MACHINE // 4)
"""Bytes that one array of numbers may take: a quarter of the machine, as there is never one alone, and at most 2 GiB.

A larger array is more likely a typing error than a plan.
"""
COPIES = 8
"""Copies of the parameters that a run holds: state, step, gradient, its clipped form, two moments, the last frame, the draw."""
PER_CHARACTER = 4
"""Numbers of eight bytes that a character of a table takes while it is read: "1," is a text, a float and a place in a list."""
WORK = 2**28
"""Numbers that one step of a run may go through: about a second of compiled code, which nothing can interrupt."""


def affordable(*shape: int) -> bool:
    """Whether an array of 8-byte numbers is within the limit."""
    return 8 * math.prod(shape) <= LIMIT


def require_memory(what: str, remedy: str, *shape: int) -> None:
    """Refuse an array of 8-byte numbers above the limit, with its shape, its size and what would make it smaller."""
    if not affordable(*shape):
        size = 8 * math.prod(shape)
        raise InputError(f"{what} would take {_gib(size)} ({_form(shape)} numbers), above {LIMIT / 2**30:.2g} GiB; {remedy}")


def require_parameters(shapes: Mapping[str, tuple[int, ...]], remedy: str, **sizes: int | None) -> None:
    """Refuse a model whose parameters, in all the copies that a run holds, are above the limit; `sizes` are named."""
    named = ", ".join(f"{name.replace('_', ' ')} {size:,}" for name, size in sizes.items() if size is not None)
    subject = f"the parameters of this model ({named})" if named else "the parameters of this model"
    require_memory(subject, remedy, COPIES, numbers(shapes))


def require_work(what: str, remedy: str, *shape: int) -> None:
    """Refuse a step that goes through more numbers than are done in about a second."""
    if math.prod(shape) > WORK:
        raise InputError(f"{what} would go through {_form(shape)} numbers at once, above {WORK:,}; {remedy}")


def require_disk(what: str, remedy: str, folder: Path, *shape: int) -> None:
    """Refuse 8-byte numbers that a folder, which need not exist yet, has no room for. Writing refuses the rest."""
    place = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    size, disk = 8 * math.prod(shape), shutil.disk_usage(place)
    if size > disk.free and disk.total:  # a place without a disk, such as /proc, has no bytes at all
        raise InputError(f"{what} would take {_gib(size)}, above the {_gib(disk.free)} that are free in {place}; {remedy}")


def require_stored(what: str, remedy: str, shape: tuple[int, ...], itemsize: int = 8) -> None:
    """Refuse data of others that does not fit into half of this machine: it is there, so its size is no typing error."""
    size = itemsize * math.prod(shape)
    if size > MACHINE // 2:
        raise InputError(f"{what} would take {_gib(size)} ({_form(shape)} numbers), above {_gib(MACHINE // 2)}; {remedy}")


def read_table(what: str, path: Path) -> str:
    """The text of a table that a person gave. A file that is too large, or has no end, is refused before it is all read."""
    room = LIMIT // (8 * PER_CHARACTER)
    with path.open(encoding="utf-8-sig", newline="") as file:
        text = file.read(room + 1)
    if len(text) > room:
        raise InputError(f"{what} has more than {room:,} characters, too many to keep as numbers in memory; give a smaller table")
    return text


def numbers(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """How many numbers blocks of these shapes hold."""
    return sum(math.prod(shape) for shape in shapes.values())


def _gib(size: int) -> str:
    """A number of bytes; integers, because a float would overflow."""
    tenths = (10 * size + 2**29) // 2**30
    return f"{tenths // 10:,}.{tenths % 10} GiB"


def _form(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{part:,}" for part in shape)
