"""Curves with known transitions, and curves that have none by construction. Everything is drawn from a seed."""

import numpy as np


def records(rng: np.random.Generator) -> np.ndarray:
    """Steps at which a training run may be recorded: half of them log-spaced, half evenly."""
    last = int(np.exp(rng.uniform(np.log(1000), np.log(50_000))))
    each = int(rng.choice([40, 75, 145]))
    spaced = np.geomspace(1, last, each), np.linspace(0, last, each)
    return np.union1d(*(np.unique(np.round(steps)) for steps in spaced))


def correlated(rng: np.random.Generator, size: int, rho: float) -> np.ndarray:
    """Noise of variance 1 with correlation rho between neighbouring records."""
    found = rng.normal(size=size)
    for i in range(1, size):
        found[i] = rho * found[i - 1] + np.sqrt(1 - rho**2) * found[i]
    return found


def walk(rng: np.random.Generator, step: np.ndarray) -> np.ndarray:
    """A Brownian motion in the step, of standard deviation 1 at the end."""
    return np.cumsum(rng.normal(size=len(step)) * np.sqrt(np.diff(step, prepend=0) / step[-1]))


def noise(rng: np.random.Generator, size: int) -> tuple[np.ndarray, float]:
    """White or correlated noise, and its standard deviation."""
    level = float(np.exp(rng.uniform(np.log(0.005), np.log(0.06))))
    rho = 0.0 if rng.random() < 0.5 else rng.uniform(0.4, 0.8)
    return level * correlated(rng, size, rho), level


BACKGROUNDS = {
    "flat": lambda rng, x: np.zeros(len(x)),
    "log": lambda rng, x: -rng.uniform(0.02, 0.15) * np.log(x + 1 / 300),
    "power": lambda rng, x: rng.uniform(0.3, 1) * (1 + 300 * x) ** -rng.uniform(0.2, 0.6),
    "exponential": lambda rng, x: rng.uniform(0.2, 1) * np.exp(-x / np.exp(rng.uniform(np.log(0.03), np.log(0.5)))),
}


def planted(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A curve with up to four transitions: steps, values, their centres in order, and amplitude over noise."""
    rng = np.random.default_rng([2026, seed])
    step = records(rng)
    x = step / step[-1]
    curve = BACKGROUNDS[rng.choice(list(BACKGROUNDS))](rng, x)
    count = min(rng.poisson(1.5), 4)
    centres = _apart(rng, count)
    widths, heights = np.exp(rng.uniform(np.log(0.03), np.log(0.3), len(centres))), rng.uniform(0.15, 1, len(centres))
    with np.errstate(divide="ignore", over="ignore"):
        for centre, width, height in zip(centres, widths, heights, strict=True):
            curve = curve - height / (1 + np.exp(-(np.log(x) - centre) / width))
    added, level = noise(rng, len(step))
    return step, curve + added, np.exp(centres) * step[-1], heights / level


def _apart(rng: np.random.Generator, count: int) -> np.ndarray:
    """Centres log-uniform between 2 % and 70 % of the last step, at least .5 apart in ln step."""
    while True:
        found = np.sort(rng.uniform(np.log(0.02), np.log(0.7), count))
        if np.all(np.diff(found) > 0.5):
            return found


NULLS = {
    "white": lambda rng, s, x, e: e * rng.normal(size=len(s)),
    "correlated": lambda rng, s, x, e: e * correlated(rng, len(s), rng.uniform(0.4, 0.8)),
    "strongly correlated": lambda rng, s, x, e: e * correlated(rng, len(s), 0.95),
    "walk": lambda rng, s, x, e: rng.uniform(0.1, 1) * walk(rng, s) + e * rng.normal(size=len(s)),
    "power": lambda rng, s, x, e: rng.uniform(0.5, 2) * (s + 1) ** -rng.uniform(0.2, 0.6) + e * rng.normal(size=len(s)),
    "knee": lambda rng, s, x, e: _knee(rng, x) + e * rng.normal(size=len(s)),
    "exponential": lambda rng, s, x, e: BACKGROUNDS["exponential"](rng, x) + e * rng.normal(size=len(s)),
    "drift": lambda rng, s, x, e: -rng.uniform(0.05, 0.3) * np.log(x + 1 / 300) + e * rng.normal(size=len(s)),
    "bend": lambda rng, s, x, e: (
        -rng.uniform(0.1, 0.5) * np.maximum(np.log(x + 1 / 300) - rng.uniform(-4.5, -0.5), 0) + e * rng.normal(size=len(s))
    ),
    "walk and power": lambda rng, s, x, e: (s + 1) ** -0.4 + rng.uniform(0.05, 0.5) * walk(rng, s) + e * rng.normal(size=len(s)),
    "heavy tails": lambda rng, s, x, e: (s + 1) ** -0.3 + e * rng.standard_t(2.5, size=len(s)),
    "stretched exponential": lambda rng, s, x, e: np.exp(-((x / rng.uniform(0.05, 0.3)) ** 0.5)) + e * rng.normal(size=len(s)),
    "cosine": lambda rng, s, x, e: 0.5 * (1 + np.cos(np.pi * x)) + e * rng.normal(size=len(s)),
    "burst": lambda rng, s, x, e: _burst(rng, x) + e * rng.normal(size=len(s)),
    "noise that shrinks": lambda rng, s, x, e: (s + 1) ** -0.4 + e * rng.normal(size=len(s)) * (x + 1e-3) ** -0.3,
}
"""Curves without a transition, as functions of a generator, the steps, the steps over the last one and the noise level."""


def _knee(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    at, slow, fast = np.exp(rng.uniform(np.log(0.03), np.log(0.5))), rng.uniform(0.05, 0.2), rng.uniform(0.3, 0.7)
    ratio = (x + 1e-4) / at
    return np.where(ratio < 1, ratio**-slow, ratio**-fast)


def _burst(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """A rectangle that lasts for less than 5 % of the run and for less than from x to 5 x."""
    begin = np.exp(rng.uniform(np.log(0.02), np.log(0.8)))
    return np.where((x > begin) & (x < begin + rng.uniform(0.005, 0.05)), 1.0, 0.0)


def null(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A curve of a kind that has no transition."""
    rng = np.random.default_rng([*name.encode(), seed])
    step = records(rng)
    level = float(np.exp(rng.uniform(np.log(0.005), np.log(0.06))))
    return step, NULLS[name](rng, step, step / step[-1], level)
