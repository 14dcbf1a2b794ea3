"""Random keys: every draw is a function of a seed and of what it is for, never of hidden state."""

import hashlib

import numpy as np

from stagescope.errors import InputError


def key(seed: int, *purpose: str | int) -> np.random.Generator:
    """A generator for one purpose, e.g. `key(0, "init", "Y")`; counter based, so a resumed run draws the same numbers."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError(f"seed is {seed!r}, but must be a whole number")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}, but must be >= 0 and below 2^63")
    words = "/".join(str(part) for part in purpose).encode()
    stream = int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "little")
    return np.random.Generator(np.random.Philox(key=[int(seed), stream]))
