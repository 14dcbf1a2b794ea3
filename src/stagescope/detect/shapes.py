"""Shapes that a change of a curve can have: hypotheses that compete for each event. All have height 1 on the clock ln x."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.detect.limits import LIMITS

MIDDLE = float(np.log(0.85 / 0.15))
"""A logistic step goes from 15 % to 85 % of its height in twice this many widths: `rise` is that length in ln x."""
TAIL = float(np.log(0.95 / 0.05))
"""The same for 5 % and 95 %, where an event starts and stops."""
RELAXATION = float(np.log(0.85 / 0.15))
"""Time constants in which an exponential goes from 15 % to 85 % of its way."""
LONGEST = float(np.log(5))
"""Largest rise of a fast change: from x to 5 x. An exponential relaxation from the start has ln(ln(.15)/ln(.85)) = 2.46."""
STEPS = ("jump", "sigmoid", "ramp", "relaxation")
FORMS = (*STEPS, "decay", "bump")
"""Forms of a step, and of a spike that recovers. A decay from the first record, and what is slower than `LONGEST`, is drift."""


def columns(form: str, x: np.ndarray, centre: np.ndarray, rise: np.ndarray) -> np.ndarray:
    """The shapes of one form with given `centre` (half of the change is over) and `rise`, one a column."""
    length = 2 * centre * np.sinh(rise / 2)  # of the rise in x
    late = x[:, None] - centre
    if form == "jump":
        return np.where(late > 0, 1.0, 0.0)
    if form == "sigmoid":
        return 1 / (1 + np.exp(np.clip(-2 * MIDDLE / rise * (np.log(x)[:, None] - np.log(centre)), -500, 500)))
    if form == "ramp":
        return np.clip(0.5 + 0.7 * late / length, 0, 1)
    if form == "bump":
        return np.exp(-0.5 * np.minimum((2 * MIDDLE * late / length / 1.7) ** 2, 1000))  # 1.7: a logistic as a normal law
    constant = length / RELAXATION
    late = late + (np.log(2) * constant if form == "relaxation" else 0.0)
    decay = np.where(late >= 0, np.exp(-np.maximum(late, 0) / constant), 0.0)
    return np.where(late >= 0, 1 - decay, 0.0) if form == "relaxation" else decay


@dataclass(frozen=True)
class Shape:
    """One hypothesis."""

    form: str
    centre: float
    rise: float

    def on(self, x: np.ndarray) -> np.ndarray:
        return columns(self.form, x, np.array([self.centre]), np.array([self.rise]))[:, 0]

    @property
    def slope_length(self) -> float:
        """In x, over which it would rise by its height: it rises by 70 % of that from 15 % to 85 %."""
        return 2 * self.centre * float(np.sinh(self.rise / 2)) / 0.7

    @property
    def slowest(self) -> float:
        """The largest rise of its form: a sigmoid may be drift."""
        return 2 * LONGEST if self.form == "sigmoid" else LONGEST

    @property
    def span(self) -> tuple[float, float]:
        """Where it starts and stops in x: at 5 % and 95 % of its height."""
        length = 2 * self.centre * np.sinh(self.rise / 2)
        constant = length / RELAXATION
        match self.form:
            case "jump":
                return self.centre, self.centre
            case "sigmoid":
                factor = float(np.exp(self.rise * TAIL / MIDDLE / 2))
                return self.centre / factor, self.centre * factor
            case "ramp":
                return self.centre - length / 1.4, self.centre + length / 1.4
            case "relaxation":
                return self.centre - np.log(2) * constant, self.centre + (np.log(20) - np.log(2)) * constant
            case "bump":
                return self.centre - length, self.centre + length
        return self.centre, self.centre + np.log(20) * constant


@dataclass(frozen=True)
class Dictionary:
    """All shapes that a curve recorded at `x` is searched for, as columns; a rise below the local spacing is a jump."""

    x: np.ndarray

    @cached_property
    def shapes(self) -> list[tuple[str, np.ndarray, np.ndarray]]:
        x, u = self.x, np.log(self.x)
        gap, length = np.diff(u), u[-1] - u[0]
        middle = (x[1:] + x[:-1]) / 2
        candidates = [("jump", middle, np.zeros(len(middle)))]
        grid = []
        rise = max(2 * float(np.min(gap)), LONGEST / 2**7)
        while rise < min(length, 2 * LONGEST):
            place = np.arange(u[0], u[-1], rise / 2)
            place = place[np.interp(place, u[1:], gap) <= rise / 2]
            grid.append(np.stack([place, np.full(len(place), rise)]))
            rise *= 2
        centre, rises = np.concatenate(grid, axis=1) if grid else np.empty((2, 0))
        centre = np.exp(centre)
        fast = rises <= LONGEST
        for form in FORMS[1:]:
            eligible = np.ones(len(rises), dtype=bool) if form == "sigmoid" else fast
            if form == "decay":  # it begins between two records
                start = middle[np.clip(np.searchsorted(x, centre) - 1, 0, len(middle) - 1)]
                stop = start * (1 + np.log(20) * 2 * np.sinh(rises / 2) / RELAXATION)
                recovers = fast & (
                    stop < x[-1 - min(LIMITS.records, len(x) - 1)]
                )  # what does not recover before the end is a step
                starts, slow = np.unique(np.stack([start[recovers], rises[recovers]]), axis=1)
                constants = np.geomspace(x[1] - x[0], x[-1] - x[0], 14)
                slow = np.concatenate([slow, 2 * np.arcsinh(constants * RELAXATION / 2 / x[0])])
                candidates.append((form, np.concatenate([starts, np.full(14, x[0])]), slow))
            else:
                candidates.append((form, centre[eligible], rises[eligible]))
        return candidates

    @cached_property
    def table(self) -> np.ndarray:
        return np.concatenate([columns(form, self.x, *places) for form, *places in self.shapes], axis=1)

    @cached_property
    def forms(self) -> np.ndarray:
        return np.concatenate([np.full(len(centre), FORMS.index(form)) for form, centre, _ in self.shapes])

    def shape(self, k: int) -> Shape:
        form = int(self.forms[k])
        _, centre, rise = self.shapes[form]
        k -= int(np.searchsorted(self.forms, form))
        return Shape(FORMS[form], float(centre[k]), float(rise[k]))
