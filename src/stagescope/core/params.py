"""Named parameters and the flat vectors that solvers want."""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.core.errors import InputError

Params = Mapping[str, np.ndarray]
"""Parameter blocks by the paper's names, float64."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def check_name(name: str, taken: tuple[str, ...] = ()) -> None:
    """Block and series names become array names on disk, so they must be identifiers and not collide."""
    if not _NAME.match(name):
        raise InputError(f"{name!r} cannot name a stored array: use letters, digits and underscores")
    if name in taken:
        raise InputError(f"{name!r} is the name of a recorded series; rename the parameter block")


@dataclass(frozen=True)
class Layout:
    """The order and shapes of parameter blocks inside one flat vector."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def of(cls, params: Params) -> "Layout":
        return cls(tuple((name, tuple(np.shape(block))) for name, block in params.items()))

    @property
    def size(self) -> int:
        return sum(math.prod(shape) for _, shape in self.shapes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.shapes)

    def slices(self) -> dict[str, slice]:
        return dict(self._places)

    @cached_property
    def _places(self) -> dict[str, slice]:
        places, start = {}, 0
        for name, shape in self.shapes:
            places[name] = slice(start, start + math.prod(shape))
            start = places[name].stop
        return places

    def pack(self, params: Params) -> np.ndarray:
        if set(params) != set(self.names):
            raise InputError(f"expected parameter blocks {sorted(self.names)}, got {sorted(params)}")
        return np.concatenate([np.ravel(np.asarray(params[name], dtype=float)) for name in self.names])

    def spread(self, numbers: Mapping[str, np.ndarray | float]) -> np.ndarray:
        """Numbers of blocks, or of their entries, as a flat vector; 1 where a block has none."""
        parts = [np.broadcast_to(numbers.get(name, 1.0), shape).ravel() for name, shape in self.shapes]
        return np.concatenate(parts, dtype=float)

    def unpack(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Views into `vector` (last axis = parameters), not copies."""
        lead, places = vector.shape[:-1], self._places
        return {name: vector[..., places[name]].reshape(lead + shape) for name, shape in self.shapes}


def key(seed: int, *purpose: str | int) -> np.random.Generator:
    """A generator for one purpose, e.g. `key(0, "init", "Y")`; counter based, so a resumed run draws the same numbers."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError(f"seed is {seed!r}, but must be a whole number")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}, but must be >= 0 and below 2^63")
    words = "/".join(str(part) for part in purpose).encode()
    stream = int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "little")
    return np.random.Generator(np.random.Philox(key=[int(seed), stream]))


def root_mean_square(params: Params) -> float:
    """Of all entries of all blocks."""
    return float(np.sqrt(np.mean(np.concatenate([np.ravel(block) for block in params.values()]) ** 2)))
