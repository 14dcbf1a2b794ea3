"""Events of attention: fast changes of curves of heads, those that come together as one event. NumPy and the detector alone.

Many curves are searched, so each must gain more likelihood than a single one (`Rules.gain` + 2 ln of their number), and each
change must exceed an absolute floor: heads that have nothing to learn still tremble.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stagescope.detect.plateaus import curve_transitions, transition_spans
from stagescope.detect.stage import BROKEN, Transition
from stagescope.detect.transitions import RULES
from stagescope.runs.run import Run
from stagescope.watching.source import Model, head_name, model_of


@dataclass(frozen=True)
class Floors:
    """The least change of a curve of a head that counts."""

    share: float = 0.05  # of the attention of a row
    entropy: float = 0.1  # nats
    agreement: float = 0.1  # mean cosine with the patterns of the other heads of the layer
    loss: float = 0.02  # of the range of the probe loss, for other losses
    rank: float = 0.02  # of its largest value, for the effective rank of the embedding
    curves: int = 48  # that are searched, those that move most beside their floor; one of 300 records takes about 30 ms
    together: float = 0.12  # in ln step: the detector's own distance below which two changes are one


FLOORS = Floors()
SHARES = {"induction": "induction", "duplicate": "duplicate", "prefix_match": "prefix match", "sink": "sink"}
"""Recorded shares of attention (record, layer, head), and what they are called."""


@dataclass(frozen=True, eq=False)
class HeadCurve:
    """One number of one head over the records, and the least change that counts."""

    what: str
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

    what: str
    layer: int
    head: int
    transition: Transition
    floors: float

    def __str__(self) -> str:
        return f"{self.what} of {head_name(self.layer, self.head)} {self.transition.amplitude:+.2f}"


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
        more = "" if count <= 3 else f" and {count - 3} more"
        return f"{backed}: {', '.join(map(str, self.moves[:3]))}{more}"


def head_curves(run: Run, floors: Floors = FLOORS) -> list[HeadCurve]:
    """All curves of heads that move by more than their floor, those that move most first."""
    model = model_of(run)
    found = [curve for curve in _all(run, model, floors) if curve.reach >= 1]
    return sorted(found, key=lambda curve: -curve.reach)


def _all(run: Run, model: Model, floors: Floors) -> Iterator[HeadCurve]:
    arrays = run.series
    kept = {what: (arrays[name], floors.share) for name, what in SHARES.items() if name in arrays}
    if "lag_mass" in arrays and arrays["lag_mass"].shape[-1] > 1:
        kept["lag 1"] = arrays["lag_mass"][..., 1], floors.share
    if "entropy" in arrays:
        kept["entropy"] = arrays["entropy"], floors.entropy
    if "agreement" in arrays:
        kept["agreement"] = _with_others(np.asarray(arrays["agreement"], dtype=float)), floors.agreement
    for what, (values, floor) in kept.items():
        for layer, head in model.each():
            yield HeadCurve(what, layer, head, np.asarray(values[:, layer, head], dtype=float), floor)


def _with_others(agreement: np.ndarray) -> np.ndarray:
    """Mean cosine of each head with the other heads of its layer, nan for a head that is alone."""
    alone = np.eye(agreement.shape[-1], dtype=bool) | ~np.isfinite(agreement)
    count = (~alone).sum(axis=-1)
    return np.where(alone, 0.0, agreement).sum(axis=-1) / np.where(count > 0, count, np.nan)


def head_events(run: Run, floors: Floors = FLOORS) -> tuple[HeadEvent, ...]:
    """The events of attention in order of time; a run whose numbers broke down has none."""
    if run.status in BROKEN:
        return ()
    curves = head_curves(run, floors)[: floors.curves]
    rules = replace(RULES, gain=RULES.gain + 2 * math.log(max(1, len(curves))))
    moves = []
    for curve in curves:
        found = curve_transitions(run.time, curve.values, rules=rules)
        sizes = [abs(each.amplitude) / curve.floor for each in found]
        moves += [
            Move(curve.what, curve.layer, curve.head, each, size) for each, size in zip(found, sizes, strict=True) if size >= 1
        ]
    return tuple(sorted(_clusters(run.time, moves, floors), key=lambda event: event.t))


def _clusters(time: np.ndarray, moves: list[Move], floors: Floors) -> Iterator[HeadEvent]:
    """The largest move takes those that come with it: then the next largest of the others, and so on."""
    spans = {id(move): transition_spans(time, [move.transition])[0] for move in moves}
    left = sorted(moves, key=lambda move: -move.floors)
    while left:
        top = left[0]
        (start, stop), last = spans[id(top)], float(time[-1])
        own = [move for move in left if _meets(top.transition, move.transition, last, floors.together)]
        own += [move for move in left if move not in own and (_inside(move, spans[id(top)]) or _inside(top, spans[id(move)]))]
        left = [move for move in left if move not in own]
        own.sort(key=lambda move: -move.floors)
        yield HeadEvent(top.transition.t, top.transition.low, top.transition.high, start, stop, tuple(own))


def _inside(move: Move, span: tuple[float, float]) -> bool:
    return span[0] <= move.transition.t <= span[1]


def _meets(one: Transition, other: Transition, last: float, together: float) -> bool:
    """Whether two transitions are nearer than the detector can tell apart, or their intervals overlap."""
    near = abs(math.log((other.t + last / 300) / (one.t + last / 300))) <= together
    return near or (other.low <= one.high and one.low <= other.high)
