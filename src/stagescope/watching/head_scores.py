"""What each head of a watched model does, as numbers at every record, beside what chance gives. NumPy alone.

Chance is attention that is even over all keys a query sees: the query at place q gives each of them 1/(q + 1), or 1/length
where the model is not causal.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stagescope.runs.run import Run
from stagescope.watching.source import model_of

SEEN_FROM = 4
"""Place of the first query that counts for a sink: as recorded, earlier ones see too few keys."""


@dataclass(frozen=True, eq=False)
class Score:
    """A number of each head at each record (record, layer, head), from 0 to 1, and what chance gives, of the same shape.

    `strength` is 1 where a head just deserves the name, and larger beyond.
    """

    value: np.ndarray
    chance: np.ndarray
    strength: np.ndarray


@dataclass(frozen=True)
class Thresholds:
    """When a head has a name.

    share: of its attention that a head must give to the keys of its name, beyond what chance gives there. Two such shares
        nearly fill a row, so that hardly two names compete. In the trainings of validation/watched_tasks.py heads that settled
        on one of them ended between .45 and 1, other heads below .32, heads of models with nothing to learn below .05.
    content: how far a row of a positional head may be from the mean row at the same place of other sequences, in total
        variation: at least two thirds of its attention lie where position alone puts them.
    narrow: nats by which a positional head's entropy is below that of even attention: as if it left out half of its keys.
    kept: of the strength that gives a name, what keeps it: a head at the threshold does not flicker.
    records: how long a name must last, and how many records a running median takes: two odd records change nothing.
    """

    share: float = 0.4
    content: float = 1 / 3
    narrow: float = float(np.log(2))
    kept: float = 0.75
    records: int = 5


THRESHOLDS = Thresholds()


@dataclass(frozen=True)
class Chance:
    """What even attention gives on a probe of some length."""

    length: int
    causal: bool = True

    @property
    def shares(self) -> np.ndarray:
        """Of each key, by the place of the query."""
        return 1 / np.arange(1, self.length + 1) if self.causal else np.full(self.length, 1 / self.length)

    def mean(self, first: int) -> float:
        """Mean share of one key over the queries from place `first` on."""
        return float(self.shares[first:].mean()) if first < self.length else 1.0

    @property
    def entropy(self) -> float:
        """Mean entropy of a row, nats."""
        return float(-np.log(self.shares).mean())


def scores(run: Run, thresholds: Thresholds = THRESHOLDS) -> dict[str, Score]:
    """The scores by name, in the order in which names go before each other; without those whose arrays were not recorded.

    What depends on tokens goes before what depends on place: a head that copies from an earlier occurrence may rest on the
    first token where there is none, and is an induction head all the same.
    """
    model, arrays = model_of(run), run.series
    chance, half = Chance(model.length, model.causal), model.period
    found: dict[str, Score] = {}
    if "induction" in arrays:
        matched = _numbers(arrays["prefix_match"]) if "prefix_match" in arrays else 0.0
        found["induction"] = _share(arrays["induction"], _at_lag(arrays, half - 1, chance.mean(half), matched), thresholds)
    if "duplicate" in arrays:
        found["duplicate"] = _share(arrays["duplicate"], _at_lag(arrays, half, chance.mean(half)), thresholds)
    if "lag_mass" in arrays and arrays["lag_mass"].shape[-1] > 1:
        found["previous token"] = _previous(_numbers(arrays["lag_mass"]), chance.mean(1), thresholds)
    if "sink" in arrays:
        found["sink"] = _share(arrays["sink"], chance.mean(SEEN_FROM), thresholds)
    if "content" in arrays and "entropy" in arrays:
        found["positional"] = _positional(_numbers(arrays["content"]), _numbers(arrays["entropy"]), chance.entropy, thresholds)
    return found


def _numbers(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=float)


def _at_lag(arrays: Mapping[str, np.ndarray], lag: int, even: float, matched: np.ndarray | float = 0.0) -> np.ndarray | float:
    """What a head gives to a key at a fixed lag whatever the tokens are: even attention, or more where text shows it.

    On the repeated probe the earlier occurrence is always at one lag, so a head that looks there by position would pass for
    one that looks for tokens. On text that repeats itself at this lag the two are the same: what is `matched` there is not
    by position. Lags that are not recorded count as even.
    """
    mass = arrays.get("lag_mass")
    return even if mass is None or lag >= mass.shape[-1] else np.fmax(_numbers(mass[..., lag]) * (1 - matched), even)


def _share(values: np.ndarray, chance: np.ndarray | float, thresholds: Thresholds) -> Score:
    value = _numbers(values)
    level = np.broadcast_to(np.asarray(chance, dtype=float), value.shape)
    return Score(value, level, (value - level) / thresholds.share)


def _previous(mass: np.ndarray, even: float, thresholds: Thresholds) -> Score:
    """Attention to the token before; it must be more than that to any other lag."""
    made = _share(mass[..., 1], even, thresholds)
    other = np.max(np.delete(mass, 1, axis=-1), axis=-1)
    return Score(made.value, made.chance, np.minimum(made.strength, mass[..., 1] / np.maximum(other, 1e-9)))


def _positional(content: np.ndarray, entropy: np.ndarray, even: float, thresholds: Thresholds) -> Score:
    """Rows that are narrow and the same in all sequences: share that position gives, times share of keys that is left out."""
    value = (1 - content) * (1 - np.exp(np.minimum(entropy - even, 0.0)))
    narrow = (even - entropy) / thresholds.narrow
    return Score(value, np.zeros_like(value), np.minimum(narrow, thresholds.content / np.maximum(content, 1e-9)))


def prefix_keys(tokens: np.ndarray) -> np.ndarray:
    """Which keys stand right after an earlier occurrence of the query's token (sequence, query, key)."""
    same = (tokens[:, :, None] == np.roll(tokens, 1, axis=1)[:, None, :]) & np.tri(tokens.shape[1], dtype=bool)
    same[:, :, 0] = False
    return same


def prefix_match(weights: np.ndarray, tokens: np.ndarray) -> float:
    """Mean attention to `prefix_keys`, of causal patterns (sequence, query, key); the mean is over the queries that have one.

    The number that is recorded of every head of a watched model. `even_patterns` gives what chance gives.
    """
    same = prefix_keys(tokens)
    return float(np.sum(weights * same) / max(int(same.any(axis=-1).sum()), 1))


def even_patterns(count: int, length: int) -> np.ndarray:
    """Causal attention that is even over all keys a query sees (sequence, query, key)."""
    return np.broadcast_to(np.tri(length) / np.arange(1, length + 1)[:, None], (count, length, length))
