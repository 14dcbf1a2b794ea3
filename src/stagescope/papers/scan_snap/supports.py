"""The tokens of all classes in one row, class after class: the entries on which class attention lives.

A class has a few tokens of a vocabulary that grows with the number of classes. So what is kept of a run has one number an
entry, not one for every class and token.
"""

from dataclasses import dataclass

import numpy as np

from stagescope.papers.scan_snap.loss import Pairing


@dataclass(frozen=True)
class Supports:
    """Entry e is a token of class `of[e]`: column `key[e]` of Z, in row `row[e]`, with P(l|n) = `chance[e]`.

    Entries of class n are start[n] to start[n + 1], with ascending columns. `common` says which tokens other classes have too.
    """

    start: np.ndarray
    of: np.ndarray
    key: np.ndarray
    row: np.ndarray
    chance: np.ndarray
    common: np.ndarray
    keys: int

    @classmethod
    def of_law(cls, law: Pairing) -> "Supports":
        column = {token: i for i, token in enumerate(law.model.keys)}
        items = law.process.classes
        start = np.concatenate([[0], np.cumsum([len(item.tokens) for item in items])])
        of = np.repeat(np.arange(len(items)), np.diff(start))
        key = np.array([column[token] for item in items for token in item.tokens])
        order = np.lexsort((key, of))
        chance = np.concatenate([item.probabilities for item in items])[order]
        common = np.isin(np.array(law.model.keys)[key[order]], sorted(law.process.common))
        return cls(start, of, key[order], law.rows["query"][of], chance, common, len(column))

    @property
    def classes(self) -> int:
        return len(self.start) - 1

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum over the tokens of each class (..., classes)."""
        return np.add.reduceat(values, self.start[:-1], axis=-1)

    def tops(self, values: np.ndarray) -> np.ndarray:
        """The largest over the tokens of each class (..., classes)."""
        return np.maximum.reduceat(values, self.start[:-1], axis=-1)

    def argtops(self, values: np.ndarray) -> np.ndarray:
        """The entry (classes,) of the first largest of each class; what is not a number is least."""
        values = np.nan_to_num(values, nan=-np.inf)
        best = np.flatnonzero(values == self.tops(values)[self.of])
        return best[np.searchsorted(best, self.start[:-1])]

    def attention(self, scores: np.ndarray) -> np.ndarray:
        """c_{l|n} ~ P(l|n) exp(z_l), entry by entry."""
        weights = self.chance * np.exp(scores - self.tops(scores)[..., self.of])
        return weights / self.sums(weights)[..., self.of]

    def features(self, attention: np.ndarray) -> np.ndarray:
        """f_n = c_n/|c_n|_2, entry by entry."""
        return attention / np.sqrt(self.sums(attention**2))[..., self.of]

    def entropy(self, attention: np.ndarray) -> np.ndarray:
        """Entropy in nats of attention, renormalised on the distinct tokens of each class (..., classes)."""
        own = np.where(self.common, 0.0, attention)
        share = own / self.sums(own)[..., self.of]
        return -self.sums(share * np.log(np.where(share > 0, share, 1.0)))

    def dense(self, values: np.ndarray) -> np.ndarray:
        """Entries as matrices (..., classes, keys), 0 where a class has no such token."""
        out = np.zeros((*values.shape[:-1], self.classes, self.keys), values.dtype)
        out[..., self.of, self.key] = values
        return out
