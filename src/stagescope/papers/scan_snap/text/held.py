"""What held-out windows say of scores that were not fitted to them, and what chance gives [SnS:text-held].

Chance is the same number with the next words of the held-out windows in another order: frequencies of types and of next words
stay, and what windows tell about the next word is lost. On a text of words in random order these numbers are exchangeable.
"""

from functools import cached_property

import numpy as np

from stagescope.keys import key
from stagescope.papers.scan_snap.text.observables import TopicAttention, attend, on_held_out
from stagescope.runs.run import Run

DRAWS = 499
"""Random orders: one in a hundred is then five of them."""
STRATUM = 8
"""Types of about equal frequency among which scores are permuted: fewer leave scores near their own place."""
FRAMES = 60
"""Frames at which the held-out loss is looked at; the best of them counts, also of permuted words."""


class HeldOut:
    """Statistics of a run of topical classes on its held-out windows: each as (measured, chance)."""

    def __init__(self, run: Run, curves: TopicAttention) -> None:
        self.run, self.curves, self.process = run, curves, curves.process

    @cached_property
    def known(self) -> np.ndarray:
        """Which types are in enough held-out windows to know their distinctness there."""
        return np.isfinite(self.process.held_distinctness)

    @cached_property
    def _orders(self) -> list[np.ndarray]:
        """The next words of the held-out windows in random orders."""
        target = self.process.part("held-out").target
        return [key(0, "next words", i).permutation(target) for i in range(DRAWS)]

    @cached_property
    def _by_chance(self) -> np.ndarray:
        """The distinctness of known types with next words in random order (draws, types)."""
        return np.array([self.process.distinctness_with(target)[self.known] for target in self._orders])

    @cached_property
    def ranks(self) -> tuple[float, np.ndarray]:
        """Rank correlation of the growth of scores with held-out distinctness."""
        growth = self.curves.growth[self.known]
        found = rank_correlation(growth, self.process.held_distinctness[self.known])
        return found, np.array([rank_correlation(growth, other) for other in self._by_chance])

    @cached_property
    def _strata(self) -> list[np.ndarray]:
        """Known types of about equal frequency, as places among all types."""
        known = np.flatnonzero(self.known)
        order = known[np.argsort(self.process.held_share[known], kind="stable")]
        return np.array_split(order, max(1, len(order) // STRATUM))

    @cached_property
    def _reordered(self) -> np.ndarray:
        """Types (draws, keys) with those of about equal frequency in random order."""
        found = np.tile(np.arange(len(self.process.keys)), (DRAWS, 1))
        for i in range(DRAWS):
            draw = key(0, "types", i)
            for some in self._strata:
                found[i, some] = draw.permutation(some)
        return found

    @cached_property
    def partial_ranks(self) -> tuple[float, np.ndarray]:
        """The same at equal frequency; chance has the scores of types of about equal frequency in another order."""
        share, distinct = self.process.held_share[self.known], self.process.held_distinctness[self.known]
        growth = self.curves.growth
        chance = [rank_correlation(growth[order][self.known], distinct, share) for order in self._reordered]
        return rank_correlation(growth[self.known], distinct, share), np.array(chance)

    @cached_property
    def attended(self) -> tuple[float, np.ndarray]:
        """By how much the mean held-out distinctness of what is attended to grows from the start to the end, in nats.

        Chance is the larger of two: next words in another order, and scores of types of equal frequency in another order.
        """
        distinct = self.process.held_distinctness[self.known]
        before = self._attended_types(self.curves.scores[0])
        change = self._attended_types(self.curves.scores[-1]) - before
        by_words = self._by_chance @ change
        by_types = np.array(
            [(self._attended_types(self.curves.scores[-1][order]) - before) @ distinct for order in self._reordered]
        )
        return float(change @ distinct), np.maximum(by_words, by_types)

    def _attended_types(self, scores: np.ndarray) -> np.ndarray:
        """The share of held-out attention on each known type."""
        windows = self.process.part("held-out")
        mass = np.bincount(windows.key, attend(windows, scores), minlength=len(self.process.keys))[self.known]
        return mass / mass.sum()

    @cached_property
    def gain(self) -> tuple[float, np.ndarray]:
        """By how much the loss of the prior is above the best held-out loss, in nats."""
        target, model = self.process.part("held-out").target, self.curves.law.model
        column = np.array([model.outputs.index(token) for token in self.process.targets])
        frames = np.unique(np.linspace(0, self.run.frames - 1, min(FRAMES, self.run.frames)).astype(int))
        judge = on_held_out(self.curves.law)
        logs = np.array([judge.log_laws(self.run.at(int(i)))[:, column] for i in frames])  # (frames, windows, classes)
        logs = logs - np.log(self.process.prior)
        rows = np.arange(len(target))

        def best(words: np.ndarray) -> float:
            return float(logs[:, rows, words].mean(axis=1).max())

        return best(target), np.array([best(words) for words in self._orders])


def rank_correlation(x: np.ndarray, y: np.ndarray, given: np.ndarray | None = None) -> float:
    """Spearman's correlation; with `given`, the partial correlation at equal ranks of it [SnS:text-frequency]."""
    from scipy.stats import rankdata

    rows = [rankdata(values) for values in (x, y, *(() if given is None else (given,)))]
    if any(np.ptp(row) == 0 for row in rows):
        return float("nan")
    table = np.corrcoef(rows)
    if given is None:
        return float(table[0, 1])
    return float((table[0, 1] - table[0, 2] * table[1, 2]) / np.sqrt((1 - table[0, 2] ** 2) * (1 - table[1, 2] ** 2)))
