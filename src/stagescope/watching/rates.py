"""The learning rate of a watched training: warm-up, constant stretches, decay and jumps, from what was recorded."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np

from stagescope.detect.stage import Stage
from stagescope.runs.run import Run

TRACK = "learning rate"
Kind = Literal["warm-up", "rise", "constant rate", "decay"]


@dataclass(frozen=True)
class Rules:
    """When a rate changes."""

    same: float = 1e-5  # of the largest rate: float32 has 6e-8, a schedule over 100,000 steps moves by this in one
    jump: float = 0.1  # change between two neighbouring records, beside stretches that do not change, that is a jump
    most: int = 24  # stretches; a rate with more turns has no schedule to show


RULES = Rules()


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
        said = f"The learning rate {way} {self.first:.3g}" + ("" if self.first == self.last else f" to {self.last:.3g}") + "."
        return Stage(self.name, self.start, self.stop, said, TRACK, facts)


def rates_of(run: Run, rules: Rules = RULES) -> tuple[Rate, ...]:
    """The stretches of the recorded rate; none where it was not recorded, and where it has no schedule."""
    values = np.asarray(run.series["learning_rate"], dtype=float) if "learning_rate" in run.series else np.empty(0)
    good = np.isfinite(values)
    if values.ndim != 1 or good.sum() < 2:
        return ()
    found = list(_stretches(run.time[good], values[good], rules))
    return tuple(found) if len(found) <= rules.most else ()


def warm_up_end(rates: tuple[Rate, ...]) -> float | None:
    """When the rate had stopped rising for the first time; None where it did not begin by rising."""
    if not rates or rates[0].kind != "warm-up":
        return None
    return rates[0].stop if rates[0].stop is not None else float("inf")


def _stretches(time: np.ndarray, rate: np.ndarray, rules: Rules) -> Iterator[Rate]:
    size = float(np.max(np.abs(rate))) or 1.0
    change = np.diff(rate) / size
    way = np.where(np.abs(change) <= rules.same, 0, np.sign(change)).astype(int)
    place = 0
    for sign, group in groupby(way.tolist()):
        count = len(list(group))
        first, after = place, place + count
        place = after
        kind: Kind = "constant rate" if sign == 0 else "decay" if sign < 0 else "warm-up" if first == 0 else "rise"
        jump = count == 1 and abs(change[first]) >= rules.jump and _flat(way, first)
        stop = None if after == len(rate) - 1 else float(time[after])
        yield Rate(kind, float(time[first]), stop, float(rate[first]), float(rate[after]), jump)


def _flat(way: np.ndarray, at: int) -> bool:
    """Whether the rate is constant on both sides of a change, as far as there are records."""
    return bool(np.all(way[max(0, at - 1) : at] == 0) and np.all(way[at + 1 : at + 2] == 0))
