"""When the attention of a watched model moves, how far and how fast, and what its learning rate does.

An event is a fast change of curves of heads; those that come together are one. Many curves are searched, so each must gain more
likelihood than a single one (`Rules.gain` + 2 ln of their number), and each change must exceed an absolute floor: heads that
have nothing to learn still tremble.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Literal

import numpy as np

from stagescope.core.errors import InputError
from stagescope.detect.stage import BROKEN, Stage, Transition
from stagescope.detect.transitions import transitions
from stagescope.runs.run import Run
from stagescope.watching.source import curve_of, head_name, model_of


@dataclass(frozen=True)
class Together:
    """Mean cosine between the moves of the heads of one layer, from the first record to `step`.

    `error` is half of the 95 % interval that the sketch leaves.
    """

    layer: int
    step: float
    cosine: float
    error: float


def moves(run: Run) -> np.ndarray:
    """The move of each head's pattern from the first record, sketched (record, layer, head, sketch).

    Its length is the root mean square distance of rows: 0 where a head attends as at first, at most sqrt(2).
    """
    if "sketch" not in run.series:
        raise InputError("no sketch of the patterns was recorded, so nothing is known of how far they moved")
    sketch = np.asarray(run.series["sketch"], dtype=float)
    return sketch - sketch[:1]


def first_above(values: np.ndarray, bar: float) -> int | None:
    """The first record from which a curve stays above a bar for three records, or to its end; None where there is none."""
    above = np.asarray(values) > bar
    for place in np.flatnonzero(above):
        if above[place : place + 3].all():
            return int(place)
    return None


def first_layer(run: Run, away: float) -> tuple[int, int] | None:
    """Layer and record where the heads of a layer first are so far from their start, in the mean; None where none is."""
    length, entropy = np.linalg.norm(moves(run), axis=-1), np.asarray(run.series["entropy"], dtype=float)
    first_frames = []
    for layer in np.flatnonzero(np.isfinite(entropy[0]).sum(axis=-1) > 1).tolist():
        frame = first_above(np.nanmean(length[:, layer], axis=1), away)
        if frame is not None:
            first_frames.append((layer, frame))
    return min(first_frames, key=itemgetter(1), default=None)


def together(run: Run, layer: int, frame: int) -> Together:
    """Whether the heads of a layer went the same way up to a record."""
    rows = moves(run)[frame, layer]
    rows = rows[np.isfinite(rows).all(axis=-1)]
    unit = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
    pairs = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    spread = 1.96 * float(np.mean(1 - pairs**2)) / np.sqrt(rows.shape[-1])  # of the cosine of two sketches; pairs share heads
    return Together(layer, float(run.time[frame]), float(np.mean(pairs)), spread)


TRACK = "learning rate"
Kind = Literal["warm-up", "rise", "constant rate", "decay"]


@dataclass(frozen=True)
class RateLimits:
    """When a rate changes."""

    constant: float = 1e-5  # of the largest rate: float32 has 6e-8, a schedule over 100,000 steps moves by this in one
    jump: float = 0.1  # change between two neighbouring records, beside stretches that do not change, that is a jump
    stretches: int = 24  # stretches; a rate with more turns has no schedule to show


RATE_LIMITS = RateLimits()


@dataclass(frozen=True)
class Rate:
    """A stretch in which the rate rises, is constant or falls; `stop` is None for the last one."""

    kind: Kind
    start: float
    stop: float | None
    first: float
    last: float
    jump: bool = False

    @property
    def name(self) -> str:
        return "jump of the rate" if self.jump else self.kind

    @property
    def stage(self) -> Stage:
        facts = {"first": self.first, "last": self.last, "jump": self.jump}
        way = "is" if self.first == self.last else "rises from" if self.last > self.first else "falls from"
        sentence = f"The learning rate {way} {self.first:.3g}" + ("" if self.first == self.last else f" to {self.last:.3g}") + "."
        return Stage(self.name, self.start, self.stop, sentence, TRACK, facts)


def rates_of(run: Run) -> tuple[Rate, ...]:
    """The stretches of the recorded rate; none where it was not recorded, and where it has no schedule."""
    values = curve_of(run, "learning_rate")
    good = np.isfinite(values)
    if good.sum() < 2:
        return ()
    rates = tuple(_stretches(run.time[good], values[good]))
    return rates if len(rates) <= RATE_LIMITS.stretches else ()


def warm_up_end(rates: tuple[Rate, ...]) -> float | None:
    """When the rate had stopped rising for the first time; None where it did not begin by rising."""
    if not rates or rates[0].kind != "warm-up":
        return None
    return rates[0].stop if rates[0].stop is not None else float("inf")


def _stretches(time: np.ndarray, rate: np.ndarray) -> Iterator[Rate]:
    size = float(np.max(np.abs(rate))) or 1.0
    change = np.diff(rate) / size
    way = np.where(np.abs(change) <= RATE_LIMITS.constant, 0, np.sign(change)).astype(int)
    place = 0
    for sign, group in groupby(way.tolist()):
        count = len(list(group))
        first, after = place, place + count
        place = after
        kind: Kind = "constant rate" if sign == 0 else "decay" if sign < 0 else "warm-up" if first == 0 else "rise"
        # a jump is constant on both sides, as far as there are records
        flat = not (way[max(0, first - 1) : first].any() or way[first + 1 : first + 2].any())
        jump = count == 1 and abs(change[first]) >= RATE_LIMITS.jump and flat
        stop = None if after == len(rate) - 1 else float(time[after])
        yield Rate(kind, float(time[first]), stop, float(rate[first]), float(rate[after]), jump)


@dataclass(frozen=True)
class Floors:
    """The least change of a curve of a head that counts."""

    share: float = 0.05  # of the attention of a row
    entropy: float = 0.1  # nats
    agreement: float = 0.1  # mean cosine with the patterns of the other heads of the layer
    loss: float = 0.02  # of the range of the probe loss, for other losses
    rank: float = 0.02  # of its largest value, for the effective rank of the embedding
    curves: int = 48  # that are searched, those that move most beside their floor; one of 300 records takes about 30 ms


FLOORS = Floors()
SHARES = {"induction": "induction", "duplicate": "duplicate", "prefix_match": "prefix match", "sink": "sink"}
"""Recorded shares of attention (record, layer, head), and what they are called."""


@dataclass(frozen=True, eq=False)
class HeadCurve:
    """One number of one head over the records, and the least change that counts."""

    measure: str
    layer: int
    head: int
    values: np.ndarray
    floor: float

    @cached_property
    def reach(self) -> float:
        """Range of the curve in floors, without its highest and lowest hundredth."""
        good = self.values[np.isfinite(self.values)]
        low, high = np.quantile(good, [0.01, 0.99]) if len(good) else (0.0, 0.0)
        return float(high - low) / self.floor


@dataclass(frozen=True)
class Move:
    """A fast change of one curve of one head; `floors` is its size in floors."""

    measure: str
    layer: int
    head: int
    transition: Transition
    floors: float

    def __str__(self) -> str:
        return f"{self.measure} of {head_name(self.layer, self.head)} {self.transition.amplitude:+.2f}"


@dataclass(frozen=True)
class HeadEvent:
    """Changes of heads that come together: when that of the largest is, from when to when it lasts, and all of them."""

    t: float
    low: float
    high: float
    start: float
    stop: float
    moves: tuple[Move, ...]

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        return tuple(sorted({(move.layer, move.head) for move in self.moves}))

    @property
    def sentence(self) -> str:
        count, heads = len(self.moves), len(self.heads)
        backed = f"{count} curve{'' if count == 1 else 's'} of {heads} head{'' if heads == 1 else 's'}"
        suffix = "" if count <= 3 else f" and {count - 3} more"
        return f"{backed}: {', '.join(map(str, self.moves[:3]))}{suffix}"


def head_curves(run: Run) -> list[HeadCurve]:
    """All curves of heads that move by more than their floor, those that move most first."""
    arrays = run.series
    measures = {measure: (arrays[name], FLOORS.share) for name, measure in SHARES.items() if name in arrays}
    if "lag_mass" in arrays and arrays["lag_mass"].shape[-1] > 1:
        measures["lag 1"] = arrays["lag_mass"][..., 1], FLOORS.share
    if "entropy" in arrays:
        measures["entropy"] = arrays["entropy"], FLOORS.entropy
    if "agreement" in arrays:  # the mean cosine with the other heads of the layer, nan for a head that is alone
        agreement = np.asarray(arrays["agreement"], dtype=float)
        alone = np.eye(agreement.shape[-1], dtype=bool) | ~np.isfinite(agreement)
        count = (~alone).sum(axis=-1)
        mean = np.where(alone, 0.0, agreement).sum(axis=-1) / np.where(count > 0, count, np.nan)
        measures["agreement"] = mean, FLOORS.agreement
    curves = (
        HeadCurve(measure, layer, head, np.asarray(values[:, layer, head], dtype=float), floor)
        for measure, (values, floor) in measures.items()
        for layer, head in model_of(run).head_places()
    )
    return sorted((curve for curve in curves if curve.reach >= 1), key=lambda curve: -curve.reach)


def head_events(run: Run) -> tuple[HeadEvent, ...]:
    """The events of attention in order of time; a run whose numbers broke down has none."""
    if run.status in BROKEN:
        return ()
    curves = head_curves(run)[: FLOORS.curves]
    moves = []
    for curve in curves:
        for change in transitions(run.time, curve.values, curves=len(curves)):
            size = abs(change.amplitude) / curve.floor
            if size >= 1:
                moves.append(Move(curve.measure, curve.layer, curve.head, change, size))
    # the largest move takes those that come with it: then the next largest of the others, and so on
    change, remaining = [], sorted(moves, key=lambda move: -move.floors)
    while remaining:
        top = remaining[0].transition
        members = [move for move in remaining if _meets(top, move.transition)]
        remaining = [move for move in remaining if move not in members]
        change.append(HeadEvent(top.t, top.low, top.high, top.start, top.stop, tuple(members)))
    return tuple(sorted(change, key=lambda event: event.t))


def _meets(one: Transition, other: Transition) -> bool:
    """Whether the middle of one lies in the span of the other, or their intervals overlap."""
    inside = one.start <= other.t <= one.stop or other.start <= one.t <= other.stop
    return inside or (other.low <= one.high and one.low <= other.high)
