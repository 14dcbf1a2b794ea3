"""Synthetic curves whose events are known: kinds of change, of background, of noise, of records, of units. All from a seed."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import erf, expit

Drawn = tuple[np.ndarray, tuple[float, ...]]
"""A curve of height 1 and the shares of the run at which half of each of its changes is over."""


@dataclass(frozen=True)
class Synthetic:
    """A recorded curve, the times of its transitions, their heights, and the standard deviation of its noise."""

    kind: str
    time: np.ndarray
    curve: np.ndarray
    centres: tuple[float, ...]
    heights: tuple[float, ...]
    noise: float


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _early(rng: np.random.Generator) -> float:
    return log_uniform(rng, 0.08, 0.7)


def _jump(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    at = _early(rng)
    return np.where(x > at, 1.0, 0.0), (at,)


def _sigmoid(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    at = _early(rng)
    return expit((x - at) / (at * log_uniform(rng, 0.02, 0.15))), (at,)


def _log_sigmoid(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    at = _early(rng)
    return expit(np.log(np.maximum(x, 1e-9) / at) / log_uniform(rng, 0.03, 0.3)), (at,)


def _error_function(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    at = _early(rng)
    return 0.5 + 0.5 * erf((x - at) / (at * log_uniform(rng, 0.03, 0.25))), (at,)


def _ramp(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    at = _early(rng)
    length = at * rng.uniform(0.1, 0.8)
    return np.clip((x - at) / length + 0.5, 0, 1), (at,)


def _smooth_ramp(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    at = _early(rng)
    z = np.clip((x - at) / (at * rng.uniform(0.1, 0.8)) + 0.5, 0, 1)
    return z * z * (3 - 2 * z), (at,)


def _two(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    first = log_uniform(rng, 0.05, 0.25)
    second = first * rng.uniform(2.2, 3.5)
    share = rng.uniform(0.3, 0.7)
    curves = [expit((x - at) / (at * log_uniform(rng, 0.02, 0.12))) for at in (first, second)]
    return share * curves[0] + (1 - share) * curves[1], (first, second)


def _drop_on_power(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    curve, centres = _sigmoid(rng, x)
    return curve - rng.uniform(0.5, 1.5) * (1 + 300 * x) ** -rng.uniform(0.2, 0.6), centres


def _drop_with_spike(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    curve, centres = _sigmoid(rng, x)
    at = centres[0] * rng.uniform(0.3, 0.5)
    late = np.maximum(x - at, 0)
    return curve - rng.uniform(0.3, 1) * np.where(x > at, np.exp(-late / log_uniform(rng, 0.003, 0.02)), 0), centres


def _spike(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    at, late = _early(rng), 0.0
    late = np.maximum(x - at, 0)
    return np.where(x > at, np.exp(-late / log_uniform(rng, 0.003, 0.05)), 0.0), ()


def _bump(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    at = _early(rng)
    return np.exp(-0.5 * ((x - at) / log_uniform(rng, 0.003, 0.04)) ** 2), ()


def _tent(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    at, up = _early(rng), log_uniform(rng, 0.003, 0.03)
    return np.clip(np.minimum(1 + (x - at) / up, 1 - (x - at) / (up * rng.uniform(1, 5))), 0, 1), ()


def _burst(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    at = _early(rng)
    return np.where((x > at) & (x < at + log_uniform(rng, 0.003, 0.05)), 1.0, 0.0), ()


def _spikes(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    return sum((rng.uniform(0.3, 1) * _spike(rng, x)[0] for _ in range(3)), np.zeros(len(x))), ()


def _spike_on_power(rng: np.random.Generator, x: np.ndarray) -> Drawn:
    return _spike(rng, x)[0] * rng.uniform(0.3, 1.5) + (1 + 300 * x) ** -rng.uniform(0.2, 0.6), ()


KINDS: dict[str, Callable[[np.random.Generator, np.ndarray], Drawn]] = {
    "jump": _jump,
    "sigmoid": _sigmoid,
    "sigmoid in ln t": _log_sigmoid,
    "error function": _error_function,
    "ramp": _ramp,
    "smooth ramp": _smooth_ramp,
    "two drops": _two,
    "drop on a power law": _drop_on_power,
    "drop after a spike": _drop_with_spike,
    "spike": _spike,
    "bump": _bump,
    "tent": _tent,
    "burst": _burst,
    "three spikes": _spikes,
    "spike on a power law": _spike_on_power,
    "drift": lambda rng, x: (x, ()),
    "drift in ln t": lambda rng, x: (np.log(x + log_uniform(rng, 1e-3, 0.1)), ()),
    "power law": lambda rng, x: ((x + log_uniform(rng, 1e-3, 0.05)) ** -rng.uniform(0.1, 1), ()),
    "exponential": lambda rng, x: (np.exp(-x / log_uniform(rng, 0.02, 1)), ()),
    "stretched": lambda rng, x: (np.exp(-((x / log_uniform(rng, 0.05, 0.5)) ** 0.5)), ()),
    "cosine": lambda rng, x: (0.5 * (1 + np.cos(np.pi * x)), ()),
    "flat": lambda rng, x: (np.zeros(len(x)), ()),
    "walk": lambda rng, x: (np.cumsum(rng.normal(size=len(x)) * np.sqrt(np.diff(x, prepend=0))), ()),
}
"""What moves. Kinds from `spike` on have no transition."""
SPIKES = ("spike", "bump", "tent", "burst", "three spikes", "spike on a power law")
NULLS = tuple(KINDS)[list(KINDS).index("spike") :]
EVENTS = tuple(KINDS)[: list(KINDS).index("spike")]


def _noise(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Noise of variance about 1: white, correlated between neighbours, of a size that changes, or with heavy tails."""
    raw = rng.normal(size=len(x))
    which = rng.integers(5)
    if which == 1:
        rho = rng.uniform(0.3, 0.9)
        for i in range(1, len(x)):
            raw[i] = rho * raw[i - 1] + np.sqrt(1 - rho**2) * raw[i]
    elif which == 2:
        raw *= 0.3 + 1.4 * (x if rng.random() < 0.5 else 1 - x)
    elif which == 3:
        raw = rng.standard_t(4, size=len(x)) / np.sqrt(2)
    return raw


def records(rng: np.random.Generator) -> np.ndarray:
    """Shares of a run at which it is recorded: evenly, log-spaced, or half and half; 40 to 1,500 of them."""
    count = round(log_uniform(rng, 40, 1500))
    even, logs = np.linspace(0, 1, count), np.geomspace(10 ** -rng.uniform(2, 4), 1, count)
    which = rng.integers(3)
    return (even, logs, np.union1d(even[::2], logs[::2]))[which]


def synthetic(kind: str, seed: int) -> Synthetic:
    """One curve of a kind."""
    rng = np.random.default_rng([*kind.encode(), seed])
    x = records(rng)
    curve, centres = KINDS[kind](rng, x)
    curve = curve / (np.ptp(curve) or 1.0)
    level = 10 ** rng.uniform(-4, -0.9)
    height = rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-5, 5)
    offset = height * rng.choice([0.0, rng.normal() * 10 ** rng.uniform(-1, 3)])
    last = log_uniform(rng, 1, 1e6)
    heights = _heights(kind, x, curve, centres)
    return Synthetic(
        kind,
        x * last,
        offset + height * (curve + level * _noise(rng, x)),
        tuple(at * last for at in centres),
        tuple(height * each for each in heights),
        abs(height) * level,
    )


def _heights(kind: str, x: np.ndarray, curve: np.ndarray, centres: tuple[float, ...]) -> tuple[float, ...]:
    """By how much the curve without noise changes at each transition; only of kinds that rest before and after."""
    if kind in ("drop on a power law", "drop after a spike") or not centres:
        return ()
    middles = [
        curve[0],
        *(float(np.interp(np.sqrt(a * b), x, curve)) for a, b in pairwise(centres)),
        curve[-1],
    ]
    return tuple(float(each) for each in np.diff(middles))
