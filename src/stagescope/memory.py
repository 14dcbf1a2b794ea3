"""Large arrays are refused before they are made."""

import math
import os
from collections.abc import Mapping

from stagescope.errors import InputError

LIMIT = min(2 * 2**30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
"""Bytes that one array of numbers may take: a quarter of the machine, as there is never one alone, and at most 2 GiB.

A larger array is more likely a typing error than a plan.
"""
COPIES = 8
"""Copies of the parameters that a run holds: state, step, gradient, its clipped form, two moments, the last frame, the draw."""


def affordable(*shape: int) -> bool:
    """Whether an array of 8-byte numbers is within the limit."""
    return 8 * math.prod(shape) <= LIMIT


def require_memory(what: str, remedy: str, *shape: int) -> None:
    """Refuse an array of 8-byte numbers above the limit, with its shape, its size and what would make it smaller."""
    if not affordable(*shape):
        size = 8 * math.prod(shape)
        form = " x ".join(f"{part:,}" for part in shape)
        raise InputError(f"{what} would take {size / 2**30:,.1f} GiB ({form} numbers), above {LIMIT / 2**30:.2g} GiB; {remedy}")


def require_parameters(shapes: Mapping[str, tuple[int, ...]], remedy: str) -> None:
    """Refuse a model whose parameters, in all the copies that a run holds, are above the limit."""
    require_memory("the parameters of this model", remedy, COPIES, numbers(shapes))


def numbers(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """How many numbers blocks of these shapes hold."""
    return sum(math.prod(shape) for shape in shapes.values())
