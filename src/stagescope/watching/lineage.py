"""Whether checkpoints continue each other, from samples of their weights.

A fingerprint has a digest of each tensor and a sample of its entries, so that no two checkpoints need be held at once. A sample
has one row for each checkpoint, in the order of the steps, and one column for each entry of a tensor that was drawn. Two
measures are used. The *kinship* of two checkpoints is the correlation of their weights: trainings keep much of the random
numbers they started from, and two trainings from different starts share none. The *path* is the sum of distances from each
checkpoint to the next: it is shortest in the order in which the checkpoints were made.

The thresholds were fixed on 200 trainings of ten kinds (tests/watching/trainings.py, seeds 0 to 19) and twins of them.
"""

import hashlib
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.sparse.csgraph import connected_components

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
    contiguous = np.ascontiguousarray(value)
    digest = hashlib.blake2b(contiguous.reshape(-1).view(np.uint8).data, digest_size=16).digest()
    if contiguous.dtype.kind != "f" or not contiguous.size:
        return Print(value.shape, digest, 0, 0, np.zeros(0, np.float32))
    finite = np.isfinite(contiguous)
    lost = 0 if finite.all() else int(np.isnan(contiguous).sum())
    flat = contiguous.reshape(-1)
    sample = flat
    if flat.size > entries:  # the same entries in every checkpoint
        rng = np.random.default_rng(zlib.crc32(f"{name} {flat.size}".encode("utf-8", "surrogatepass")))
        sample = flat[np.unique(rng.integers(flat.size, size=entries))]
    kind = np.float64 if contiguous.dtype == np.float64 else np.float32
    return Print(value.shape, digest, lost, int(contiguous.size - finite.sum()) - lost, sample.astype(kind))


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
        places = [n for n, name in enumerate(self.names) if name not in names]
        return Series(tuple(self.names[n] for n in places), tuple(self.prints[n] for n in places))

    @cached_property
    def common(self) -> tuple[str, ...]:
        """Tensors that all checkpoints have, of the same form."""
        first = self.prints[0] if self.prints else {}
        return tuple(
            key
            for key, fingerprint in first.items()
            if all(key in prints and prints[key].form == fingerprint.form for prints in self.prints)
        )

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """Common tensors that are not the same in all checkpoints."""
        return tuple(key for key in self.common if len(set(self.digests(key))) > 1)

    @cached_property
    def weights(self) -> tuple[str, ...]:
        """Moving tensors of floats with enough entries to be told by their digests; all moving ones where there are none."""
        keys = [key for key in self.moving if self.prints[0][key].sample.size >= SMALL]
        return tuple(keys) or self.moving

    def digests(self, key: str) -> list[bytes]:
        return [prints[key].digest for prints in self.prints]

    def sample(self, key: str) -> np.ndarray:
        """One row for each checkpoint."""
        return np.stack([prints[key].sample for prints in self.prints])

    def samples(self, least: int = 1, dimensions: int = 1) -> dict[str, np.ndarray]:
        """Samples of the moving tensors of floats, with at least so many entries and dimensions."""
        kinds = {key: self.prints[0][key] for key in self.moving}
        keys = [
            key for key, fingerprint in kinds.items() if fingerprint.sample.size >= least and len(fingerprint.shape) >= dimensions
        ]
        return {key: self.sample(key) for key in keys}

    def narrow(self, key: str) -> bool:
        """Whether a tensor is kept in 16 bits."""
        return all(prints[key].narrow for prints in self.prints)


@dataclass(frozen=True)
class Limits:
    """When a measure is a finding. In brackets what clean trainings and twins of them gave."""

    kin: float = 0.2
    """Kinship over the kinship of the same start (0.60 and above between neighbours; 0.15 and below with a twin)."""
    sure: float = 16.0
    """Standard errors that the kinship of the same start must amount to: below, kinship cannot be judged."""
    shorter: float = 0.1
    """Share by which an exchange must shorten the edges it changes (clean: 0.11 at most, in trainings that have settled)."""
    shorter_end: float = 0.15
    """The same where the first or the last checkpoint takes part: it has one neighbour only (clean: 0.15 at most)."""
    margin: float = 0.02
    """Share by which every other place must be longer after the repair: else the order cannot be told."""
    ordered: float = 0.7
    """Median distance of neighbours over that of others, from which on there is no order (0.61 at most unless settled)."""
    detour: float = 3.0
    """(|ab| + |bc|) / |ac|, the median over tensors (clean: 2.1 at most, in small networks that have settled 2.6)."""
    detour_over_usual: float = 1.75
    """The same over the median detour of the training, which is 1 on a straight way, 1.4 on a random walk and 2 in noise."""
    tensor_detour: float = 4.0
    """The same for a single tensor of 256 entries or more, which is also twice the median (clean: 2.7 at most)."""
    shared: float = 0.1
    """Share of entries in tensors that are kin up to which a checkpoint is a stranger as a whole, not some of its tensors."""


LIMITS = Limits()
LEAST = 256
"""Entries of a tensor that is judged by itself."""
FEW = 64
"""Entries of a tensor that takes part in distances: smaller ones, such as biases, may come back to where they were."""


# kinship


@dataclass(frozen=True)
class Kinship:
    """For each pair of checkpoints: the correlation, what it would be for the same start, and the number of entries behind it."""

    correlation: np.ndarray
    expected: np.ndarray
    entries: np.ndarray

    @property
    def judged(self) -> np.ndarray:
        """Pairs with enough entries to tell whether they are kin."""
        return self.expected * np.sqrt(self.entries) >= LIMITS.sure

    @property
    def related(self) -> np.ndarray:
        """Pairs that are kin."""
        return self.judged & (self.correlation >= LIMITS.kin * self.expected)


def kinship(samples: Sequence[np.ndarray]) -> Kinship:
    """The kinship of checkpoints over several tensors: means, with the number of entries as weights.

    If b = a + independent change, the correlation of a and b is the ratio of their standard deviations. A tensor that is constant
    in a checkpoint, such as one that starts from zero, says nothing about it.
    """
    count = len(samples[0]) if samples else 0
    total, expected, entries = (np.zeros((count, count)) for _ in range(3))
    for sample in samples:
        centred = np.asarray(sample, float) - np.mean(sample, axis=1, keepdims=True, dtype=float)
        size = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        varying = np.outer(size > 0, size > 0)
        product = np.where(varying, np.outer(size, size), 1.0)
        weight = sample.shape[1] * varying
        total += weight * (centred @ centred.T) / product
        expected += weight * np.minimum.outer(size, size) ** 2 / product
        entries += weight
    return Kinship(total / np.maximum(entries, 1), expected / np.maximum(entries, 1), entries)


def families(kin: Kinship) -> list[list[int]]:
    """Checkpoints that are connected by kin, each family in order; the largest first, of equal ones the earlier.

    Families are separate only if somewhere a member of one follows a member of the other, and this pair can be judged.
    """
    groups = _connected(kin.related)
    home = {n: family for family, members in enumerate(groups) for n in members}
    parted = {(home[n], home[n + 1]) for n in range(len(home) - 1) if kin.judged[n, n + 1] and not kin.related[n, n + 1]}
    separate = np.array(
        [[(a, b) in parted or (b, a) in parted for b in range(len(groups))] for a in range(len(groups))], dtype=bool
    )
    merged = [sorted(n for part in group for n in groups[part]) for group in _connected(~separate)]
    return sorted(merged, key=lambda family: (-len(family), family))


def _connected(linked: np.ndarray) -> list[list[int]]:
    """The connected parts of a graph, each in order."""
    count, labels = connected_components(linked)
    return [np.flatnonzero(labels == label).tolist() for label in range(count)]


# distances


def distances(sample: np.ndarray) -> np.ndarray:
    """Euclidean distances between the rows."""
    rows = np.asarray(sample, float)
    rows = rows - rows.mean(axis=0)  # else large weights drown small moves in rounding
    gram = rows @ rows.T
    square = np.diag(gram)
    return np.sqrt(np.maximum(square[:, None] + square[None, :] - 2 * gram, 0.0))


def _large_distances(samples: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    return map(distances, [sample for sample in samples if sample.shape[1] >= FEW] or samples)


def mean_distances(samples: Sequence[np.ndarray]) -> np.ndarray:
    """Distances over several tensors, each in units of its median move from a checkpoint to the next."""
    distances_of_tensors = []
    for distance in _large_distances(samples):
        moves = np.diagonal(distance, 1)
        if (moves > 0).any():
            distances_of_tensors.append(distance / np.median(moves[moves > 0]))
    return np.mean(distances_of_tensors, axis=0) if distances_of_tensors else np.zeros((len(samples[0]), len(samples[0])))


def detours(distance: np.ndarray) -> np.ndarray:
    """(|ab| + |bc|) / |ac| of each inner checkpoint b and its neighbours; nan where a and c are the same."""
    moves, around = np.diagonal(distance, 1), np.diagonal(distance, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(around > 0, (moves[:-1] + moves[1:]) / around, np.nan)


def median_detours(samples: Sequence[np.ndarray]) -> np.ndarray:
    """The detour of each inner checkpoint: the median over tensors."""
    by_tensor = np.array([detours(distance) for distance in _large_distances(samples)])
    finite = np.isfinite(by_tensor)
    return np.array([np.median(column[keep]) if keep.any() else 1.0 for column, keep in zip(by_tensor.T, finite.T, strict=True)])


def fit(distance: np.ndarray, place: int, without: Sequence[int] = ()) -> float:
    """How much longer the path is through a checkpoint than past it; `without` are places that do not count as neighbours."""
    before = next((n for n in range(place - 1, -1, -1) if n not in without), None)
    after = next((n for n in range(place + 1, len(distance)) if n not in without), None)
    near = [float(distance[place, n]) for n in (before, after) if n is not None]
    return sum(near) - (float(distance[before, after]) if before is not None and after is not None else 0.0)


# order


@dataclass(frozen=True)
class Move:
    """Two checkpoints that are exchanged, or one that is put elsewhere, by their places in an order."""

    kind: Literal["exchange", "shift"]
    first: int
    second: int

    def applied(self, order: Sequence[int]) -> list[int]:
        new = list(order)
        if self.kind == "exchange":
            new[self.first], new[self.second] = new[self.second], new[self.first]
        else:
            new.insert(self.second, new.pop(self.first))
        return new

    def who(self, order: Sequence[int]) -> list[int]:
        """The checkpoints that change their place on purpose."""
        return [order[self.first], order[self.second]] if self.kind == "exchange" else [order[self.first]]

    def at_end(self, count: int) -> bool:
        return not {self.first, self.second}.isdisjoint({0, count - 1})


@dataclass(frozen=True)
class Misplaced:
    """A checkpoint that belongs elsewhere: its place, where it belongs in the repaired order, and how much shorter that is."""

    place: int
    before: int | None
    after: int | None
    shorter: float


def misplaced(distance: np.ndarray) -> list[Misplaced]:
    """Checkpoints that are out of order; none where the order cannot be told, or of fewer than four checkpoints.

    The move that shortens the path most is made until none is left. A place at an end is preferred only if it is shorter by more
    than a tenth, because there one edge is missing.
    """
    count = len(distance)
    order, gains = list(range(count)), {}
    for _ in range(count if count > 3 else 0):
        best = max(_gains(distance, order), key=lambda gain: gain[1] * (0.9 if gain[0].at_end(count) else 1.0), default=None)
        if best is None:
            break
        move, _, share = best
        gains |= {checkpoint: max(share, gains.get(checkpoint, 0.0)) for checkpoint in move.who(order)}
        order = move.applied(order)
    if (
        not gains
        or _disorder(distance[np.ix_(order, order)]) > LIMITS.ordered
        or _margin(distance, order, set(gains)) < LIMITS.margin
    ):
        return []
    neighbours = zip([None, *order], order, [*order[1:], None], strict=False)
    return sorted(
        (
            Misplaced(checkpoint, before, after, gains[checkpoint])
            for before, checkpoint, after in neighbours
            if checkpoint in gains
        ),
        key=lambda misfit: misfit.place,
    )


def _disorder(distance: np.ndarray) -> float:
    """The median distance of neighbours over that of checkpoints that are none: 1 for noise around a point."""
    far = float(np.median(distance[np.triu_indices(len(distance), 2)]))
    return float(np.median(np.diagonal(distance, 1))) / far if far > 0 else 1.0


def _gains(distance: np.ndarray, order: list[int]) -> Iterator[tuple[Move, float, float]]:
    """Moves that shorten the path enough, by how much, and by which share of the edges that change."""
    for move in _moves(len(order)):
        before, after = _edges(distance, order, move)
        share = (before - after) / before if before > 0 else 0.0
        if share >= (LIMITS.shorter_end if move.at_end(len(order)) else LIMITS.shorter):
            yield move, before - after, share


def _margin(distance: np.ndarray, order: list[int], who: set[int]) -> float:
    """The least share by which another place of one of these checkpoints makes the path longer."""
    shares, count = [1.0], len(order)
    ends = Move("exchange", 0, 1), Move("exchange", count - 2, count - 1)  # to exchange the first or last two is often as long
    for move in _moves(count):
        if not who.isdisjoint(move.who(order)) and move not in ends:
            before, after = _edges(distance, order, move)
            shares.append((after - before) / before if before > 0 else 0.0)
    return min(shares)


def _moves(count: int) -> Iterator[Move]:
    for first in range(count):
        yield from (Move("exchange", first, second) for second in range(first + 1, count))
        yield from (Move("shift", first, second) for second in range(count) if abs(first - second) > 1)


def _edges(distance: np.ndarray, order: list[int], move: Move) -> tuple[float, float]:
    """The length of the edges that a move changes, before and after."""
    count, (i, j) = len(order), (move.first, move.second)

    def length(*pairs: tuple[int, int]) -> float:
        inside = ((order[a], order[b]) for a, b in pairs if 0 <= a < count and 0 <= b < count)
        return float(sum(distance[pair] for pair in inside))

    if move.kind == "shift":
        gap = (j, j + 1) if i < j else (j - 1, j)
        return length((i - 1, i), (i, i + 1), gap), length((i - 1, i + 1), (gap[0], i), (i, gap[1]))
    if j == i + 1:
        return length((i - 1, i), (j, j + 1)), length((i - 1, j), (i, j + 1))
    return (
        length((i - 1, i), (i, i + 1), (j - 1, j), (j, j + 1)),
        length((i - 1, j), (j, i + 1), (j - 1, i), (i, j + 1)),
    )
