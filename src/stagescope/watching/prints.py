"""Fingerprints of checkpoints: a digest of each tensor and a sample of its entries, so that no two need be held at once."""

import hashlib
import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.watching.folders import Checkpoint

ENTRIES = 4096
"""Entries that are sampled of a tensor."""
MEMORY = 2**28
"""Bytes that all samples together may take: where there are many tensors and checkpoints, fewer entries are sampled."""


@dataclass(frozen=True)
class Print:
    """What is kept of a tensor: shape, digest, numbers of NaN and infinite entries, and a sample, empty if it has no floats."""

    shape: tuple[int, ...]
    digest: bytes
    nan: int
    infinite: int
    sample: np.ndarray

    @property
    def form(self) -> tuple[tuple[int, ...], bool]:
        """The shape, and whether it holds floats."""
        return self.shape, self.sample.size > 0

    @cached_property
    def narrow(self) -> bool:
        """Whether all sampled entries fit into 16 bits, where small moves are rounded away."""
        bits = self.sample.astype(np.float32).view(np.uint32)
        return not (bits & 0x1FFF).any()


def take(checkpoint: Checkpoint, entries: int = ENTRIES) -> dict[str, Print]:
    """The fingerprint of each tensor of a checkpoint."""
    return {name: print_of(name, value, entries) for name, value in checkpoint.tensors()}


def affordable_entries(checkpoints: int, tensors: int) -> int:
    """Entries to sample of each tensor, so that all samples fit into `MEMORY`."""
    return int(np.clip(MEMORY // max(1, 4 * checkpoints * tensors), 256, ENTRIES))


def print_of(name: str, value: np.ndarray, entries: int = ENTRIES) -> Print:
    """The fingerprint of one tensor."""
    whole = np.ascontiguousarray(value)
    digest = hashlib.blake2b(whole.reshape(-1).view(np.uint8).data, digest_size=16).digest()
    if whole.dtype.kind != "f" or not whole.size:
        return Print(value.shape, digest, 0, 0, np.zeros(0, np.float32))
    finite = np.isfinite(whole)
    lost = 0 if finite.all() else int(np.isnan(whole).sum())
    flat = whole.reshape(-1)
    sample = flat[_places(name, flat.size, entries)] if flat.size > entries else flat
    kind = np.float64 if whole.dtype == np.float64 else np.float32
    return Print(value.shape, digest, lost, int(whole.size - finite.sum()) - lost, sample.astype(kind))


def _places(name: str, size: int, entries: int) -> np.ndarray:
    """Which entries are sampled: the same in every checkpoint."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {size}".encode("utf-8", "surrogatepass")))
    return np.unique(rng.integers(size, size=entries))
