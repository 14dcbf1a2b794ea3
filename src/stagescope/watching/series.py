"""Fingerprints of several checkpoints in the order of their steps, and the tensors they share."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.watching.prints import Print

SMALL = 16
"""Entries from which on a tensor is told by its digest: fewer may come back to the same bits by chance."""


@dataclass(frozen=True)
class Series:
    """Names of checkpoints and the fingerprints of their tensors."""

    names: tuple[str, ...]
    prints: tuple[dict[str, Print], ...]

    def __len__(self) -> int:
        return len(self.names)

    def without(self, names: Collection[str]) -> "Series":
        """The series without some of its checkpoints."""
        return self.only([n for n, name in enumerate(self.names) if name not in names])

    def only(self, places: list[int]) -> "Series":
        return Series(tuple(self.names[n] for n in places), tuple(self.prints[n] for n in places))

    @cached_property
    def common(self) -> tuple[str, ...]:
        """Tensors that all checkpoints have, of the same form."""
        first = self.prints[0] if self.prints else {}
        return tuple(
            key for key, each in first.items() if all(key in other and other[key].form == each.form for other in self.prints)
        )

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """Common tensors that are not the same in all checkpoints."""
        return tuple(key for key in self.common if len(set(self.digests(key))) > 1)

    @cached_property
    def weights(self) -> tuple[str, ...]:
        """Moving tensors of floats with enough entries to be told by their digests; all moving ones where there are none."""
        found = [key for key in self.moving if self.prints[0][key].sample.size >= SMALL]
        return tuple(found) or self.moving

    def digests(self, key: str) -> list[bytes]:
        return [each[key].digest for each in self.prints]

    def sample(self, key: str) -> np.ndarray:
        """One row for each checkpoint."""
        return np.stack([each[key].sample for each in self.prints])

    def samples(self, least: int = 1, dimensions: int = 1) -> dict[str, np.ndarray]:
        """Samples of the moving tensors of floats, with at least so many entries and dimensions."""
        kinds = {key: self.prints[0][key] for key in self.moving}
        chosen = [key for key, each in kinds.items() if each.sample.size >= least and len(each.shape) >= dimensions]
        return {key: self.sample(key) for key in chosen}

    def narrow(self, key: str) -> bool:
        """Whether a tensor is kept in 16 bits."""
        return all(each[key].narrow for each in self.prints)
