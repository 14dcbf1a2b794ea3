"""Large arrays are refused before they are made."""

import math

from stagescope.errors import InputError

LIMIT = 2 * 2**30
"""Bytes that one array of numbers may take; anything larger is more likely a slip of the pen than a plan."""


def require_memory(what: str, remedy: str, *shape: int) -> None:
    """Refuse an array of 8-byte numbers above the limit, with its shape, its size and what would make it smaller."""
    size = 8 * math.prod(shape)
    if size > LIMIT:
        form = " x ".join(f"{part:,}" for part in shape)
        raise InputError(f"{what} would take {size / 2**30:,.1f} GiB ({form} numbers), above {LIMIT / 2**30:g} GiB; {remedy}")
