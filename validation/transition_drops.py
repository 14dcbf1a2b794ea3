"""Drops and jumps by what decides whether they can be seen: depth over the noise, width in records, drift, noise, clock.

Drawn independently of `transition_curves`. A change rests for eight records to each side and comes after 1 % of the run.
"""

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter
from scipy.special import erf, expit

KINDS = ("jump", "logistic", "logistic in ln t", "error function", "ramp", "relaxation", "lopsided")
DRIFTS = ("none", "line", "logarithm", "power law", "relaxation")
NOISES = ("white", "correlated", "heavy tails", "growing")
CLOCKS = ("linear", "log", "both", "resumed")
FAMILIES = ("drop", "spike", "drift", "walk")


@dataclass(frozen=True)
class Planted:
    """One change: when half of it is over, records between 15 % and 85 %, its size over the noise and over the curve's range."""

    kind: str
    centre: float
    width: float
    depth: float
    share: float

    @property
    def promised(self) -> bool:
        """A drop of 20 times the noise over ten records, or a jump of 10 times; more than 6 % of the range."""
        return self.share >= 0.06 and (self.depth >= 10 if self.kind == "jump" else self.depth >= 20 and self.width >= 10)


@dataclass(frozen=True)
class Curve:
    """A recorded curve and what was planted in it."""

    time: np.ndarray
    values: np.ndarray
    planted: tuple[Planted, ...]
    noise: str
    drift: str
    clock: str


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _clock(rng: np.random.Generator, name: str, count: int) -> np.ndarray:
    even, logs = np.arange(1, count + 1) / count, np.geomspace(10 ** -rng.uniform(1.5, 3.5), 1, count)
    return {"log": logs, "both": np.union1d(logs[::2], even[::2])}.get(name, even)


def _step(kind: str, x: np.ndarray, at: float, length: float) -> np.ndarray:
    """From 0 to 1, from 15 % to 85 % over about `length`."""
    if kind == "jump":
        return np.where(x > at, 1.0, 0.0)
    z, slope = (x - at) / length, 2 * np.log(0.85 / 0.15)
    match kind:
        case "logistic":
            return expit(slope * z)
        case "logistic in ln t":
            return expit(slope * np.log(x / at) / (2 * np.arcsinh(length / (2 * at))))
        case "error function":
            return 0.5 + 0.5 * erf(z * 1.4657)
        case "ramp":
            return np.clip(0.5 + 0.7 * z, 0, 1)
        case "relaxation":
            late = np.maximum(slope / 2 * z + np.log(2), 0)
            return 1 - np.exp(-late)
    return np.tanh(np.maximum(1 + 0.9 * z, 0) ** 3)


def _span(kind: str, at: float, length: float) -> tuple[float, float]:
    """From 5 % to 95 %, or more."""
    match kind:
        case "jump":
            return at, at
        case "logistic in ln t":
            factor = float(np.exp(1.7 * np.arcsinh(length / (2 * at))))
            return at / factor, at * factor
        case "relaxation":
            return at - 0.4 * length, at + 1.33 * length
    return at - 0.86 * length, at + 0.86 * length


def _drift(rng: np.random.Generator, name: str, x: np.ndarray) -> np.ndarray:
    match name:
        case "none":
            return np.zeros(len(x))
        case "line":
            found = -x
        case "logarithm":
            found = -np.log(x + log_uniform(rng, 1e-3, 0.1))
        case "power law":
            found = (x + log_uniform(rng, 1e-3, 0.05)) ** -rng.uniform(0.1, 0.8)
        case _:
            found = np.exp(-x / log_uniform(rng, 0.05, 1))
    return found / np.ptp(found) * log_uniform(rng, 0.1, 2)


def _noise(rng: np.random.Generator, name: str, count: int) -> np.ndarray:
    """Of standard deviation about 1."""
    white = rng.normal(size=count)
    match name:
        case "correlated":
            rho = rng.uniform(0.3, 0.9)
            white[0] /= np.sqrt(1 - rho**2)
            return lfilter([np.sqrt(1 - rho**2)], [1, -rho], white)
        case "heavy tails":
            return rng.standard_t(4, size=count) / np.sqrt(2)
        case "growing":
            return white * np.linspace(0.4, 1.4, count)[:: int(rng.choice([-1, 1]))]
    return white


def _place(rng: np.random.Generator, x: np.ndarray, taken: list[tuple[float, float]]) -> tuple[str, float, float] | None:
    """Kind, centre and length of a change that rests for eight records to each side; None if there is no room for it."""
    for _ in range(200):
        kind, middle = str(rng.choice(KINDS)), int(rng.integers(8, len(x) - 8))
        at = rng.uniform(x[middle], x[middle + 1]) if kind == "jump" else float(x[middle])
        wide = log_uniform(rng, 2, len(x) / 3)
        first, last = max(0, round(middle - wide / 2)), min(len(x) - 1, round(middle + wide / 2))
        length = float(x[last] - x[first])
        if kind != "jump" and (length > 1.5 * at or length > 0.25):  # a rise of ln 4 on the clock ln t, a quarter of the run
            continue
        low, high = _span(kind, at, length)
        begin, end = np.searchsorted(x, [low, high])
        if begin < 8 or len(x) - end < 8 or low < 0.01:
            continue
        if any(begin < np.searchsorted(x, stop) + 8 and np.searchsorted(x, start) < end + 8 for start, stop in taken):
            continue
        if all(low > 1.02 * stop or start > 1.02 * high for start, stop in taken):
            taken.append((low, high))
            return kind, at, length
    return None


def _spike(rng: np.random.Generator, count: int) -> np.ndarray:
    """A decay, a bell or a tent, back within the run."""
    width = log_uniform(rng, 2, max(3, count / 30))
    late = np.arange(count) - int(rng.integers(8, count - 8))
    form = int(rng.integers(3))
    if form == 0:
        return np.where(late >= 0, np.exp(-np.maximum(late, 0) / width), 0)
    if form == 1:
        return np.exp(-0.5 * (late / width) ** 2)
    return np.clip(np.minimum(1 + late / width, 1 - late / width / rng.uniform(1, 4)), 0, 1)


def drawn(family: str, seed: int, most: int = 3000) -> Curve:
    """A curve of 100 to `most` records: one to three changes, a spike, drift alone, or a walk; noise of 1/3000 to 1/3 of it."""
    rng = np.random.default_rng([78, *family.encode(), seed])
    clock = str(rng.choice(CLOCKS))
    x = _clock(rng, clock, round(log_uniform(rng, 100, most)))
    drift = str(rng.choice(DRIFTS, p=[0.4, 0.15, 0.15, 0.15, 0.15]))
    curve = _drift(rng, drift, x)
    noise = str(rng.choice(NOISES, p=[0.4, 0.3, 0.15, 0.15]))
    fine, taken, changes = np.geomspace(x[0], 1, 20_001), [], []
    if family == "drop":
        for _ in range(int(rng.choice([1, 1, 2, 3]))):
            if (place := _place(rng, x, taken)) is None:
                continue
            kind, at, length = place
            height = log_uniform(rng, 0.15, 1) * (-1 if rng.random() < 0.85 else 1)
            change = _step(kind, x, at, length)
            half = float(np.interp(0.5, _step(kind, fine, at, length), fine)) if kind == "lopsided" else at
            curve = curve + height * change
            changes.append((half, kind, int(((change > 0.15) & (change < 0.85)).sum()), abs(height)))
    elif family == "spike":
        curve = curve + _spike(rng, len(x))
    elif family == "walk":
        curve = np.cumsum(rng.normal(size=len(x)) * np.sqrt(np.diff(x, prepend=0)))
    level = min([height for *_, height in changes], default=1.0) / log_uniform(rng, 3, 3000)
    values = curve + level * _noise(rng, noise, len(x))
    last, unit = log_uniform(rng, 1, 1e6), 10 ** rng.uniform(-4, 4)
    shift = last * rng.uniform(1, 20) if clock == "resumed" else 0.0
    size = float(np.ptp(values))
    planted = tuple(Planted(k, at * last + shift, w, h / level, h / size) for at, k, w, h in sorted(changes))
    return Curve(x * last + shift, (values + 10 * rng.normal()) * unit, planted, noise, drift, clock)
