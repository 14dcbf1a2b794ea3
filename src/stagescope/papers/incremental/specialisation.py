"""How alike heads are, and how far they have split groups among themselves, from their attention on the groups."""

from abc import abstractmethod
from functools import cached_property

import numpy as np


class GroupMass:
    """Curves of heads that have a mass on each group of lags, or on the position of each feature."""

    @cached_property
    @abstractmethod
    def mass(self) -> np.ndarray:
        """Attention of each head on each group (frames, H, k) [ISA:mass]."""

    @cached_property
    def contrast(self) -> np.ndarray:
        """How far heads have split the groups among themselves (frames,)."""
        return contrast(self.mass)

    @cached_property
    def specialisation(self) -> np.ndarray:
        """Mass of the best matching of heads to groups, mean over matched pairs (frames,)."""
        return specialisation(self.mass)

    @cached_property
    def mass_agreement(self) -> np.ndarray:
        """Mean cosine between the masses of two heads (frames,)."""
        return agreement(self.mass)


def agreement(rows: np.ndarray) -> np.ndarray:
    """Mean cosine between two heads' rows (..., H, N) of attention, mass or values; 1 for one head, nan for rows of zeros."""
    heads = rows.shape[-2]
    if heads == 1:
        return np.ones(rows.shape[:-2])
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    rows = rows / np.where(lengths > 0, lengths, np.nan)
    total = np.sum(np.sum(rows, axis=-2) ** 2, axis=-1)
    return (total - heads) / (heads * (heads - 1))


def specialisation(mass: np.ndarray) -> np.ndarray:
    """Hungarian matching of heads to groups on the mass (frames, H, k), mean over the min(H, k) matched pairs.

    1 where every group has a head of its own, or every head a group; equal heads have the mean of their largest masses
    [ISA:specialisation].
    """
    from scipy.optimize import linear_sum_assignment

    return np.array([frame[linear_sum_assignment(frame, maximize=True)].mean() for frame in mass])


def contrast(mass: np.ndarray) -> np.ndarray:
    """The same matching on the mass (frames, H, k) less its mean over heads.

    0 for equal heads, (k - 1)/k where k heads split k groups [ISA:contrast].
    """
    return specialisation(mass - mass.mean(axis=1, keepdims=True))
