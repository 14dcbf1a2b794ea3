"""Random keys: every draw is a function of a seed and of what it is for, never of hidden state."""

import hashlib

import numpy as np


def key(seed: int, *purpose: str | int) -> np.random.Generator:
    """A generator for one purpose, e.g. `key(0, "init", "Y")`; counter based, so a resumed run draws the same numbers."""
    words = "/".join(str(part) for part in purpose).encode()
    stream = int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "little")
    return np.random.Generator(np.random.Philox(key=[seed % 2**64, stream]))
