"""Critical points: where a field vanishes, what kind of point that is, and which of them a run passed by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.search import refine
from stagescope.landscape.spectrum import Spectrum, spectrum_at
from stagescope.objectives.field import Field
from stagescope.objectives.objective import Objective
from stagescope.runs.run import Run
from stagescope.types import Params

CRITICAL = 1e-10
"""Largest |F| of a point that is called critical."""
FLAT = 1e-7
"""Rates below this share of the largest count as zero: orbits of symmetries make many of them."""
ROUNDING = 1e-12
"""Rates below this are rounding, however small the others are."""
SLOWER = 0.5
"""A slow point of a run: |F| there is this many times smaller than before and after it, or less."""
ORIGIN = 0.1
"""Distances from points shorter than this share of a run's longest parameter vector are relative to that length."""
FASTEST = 6
SEARCHES, CLOSE = 5, 0.05
"""Where the point found from a slow frame is not this close, the search is repeated from some frames up to the next peak."""


@dataclass(frozen=True, repr=False)
class CriticalPoint:
    """A zero of a field with its linearisation.

    `residual` is |F| there, `distance` how far it is from where the search began, relative to the norm of the point or to
    the length a caller gives. `index` counts growing directions, `flat` those that neither grow nor decay; each is None
    where too few rates are known. `t` is the time at which a run passed by.
    """

    params: Mapping[str, np.ndarray]
    residual: float
    distance: float
    spectrum: Spectrum
    gradient: bool
    loss: float | None
    t: float | None = None

    @property
    def found(self) -> bool:
        """Whether the search ended at a critical point."""
        return self.residual <= CRITICAL

    @property
    def rates(self) -> np.ndarray:
        return self.spectrum.rates

    @property
    def directions(self) -> tuple[Mapping[str, np.ndarray], ...]:
        return self.spectrum.directions

    @property
    def growing(self) -> np.ndarray:
        """The known rates of growing directions, fastest first."""
        return self.rates[np.real(self.rates) > self._zero]

    @property
    def index(self) -> int | None:
        """How many directions grow; None where only the fastest rates are known and all of them grow, or some are missing."""
        known = self.spectrum.complete or (self.spectrum.converged and len(self.growing) < len(self.rates))
        return len(self.growing) if known else None

    @property
    def flat(self) -> int | None:
        return int(np.sum(np.abs(np.real(self.rates)) <= self._zero)) if self.spectrum.complete else None

    @property
    def _zero(self) -> float:
        return max(FLAT * self.spectrum.largest, ROUNDING)

    @property
    def kind(self) -> str:
        """minimum, saddle or maximum of a loss; sink, saddle or source of a law that is no gradient.

        degenerate where every rate is zero, so that the linearisation says nothing; unstable where something grows and too
        few rates are known to say whether something decays; unknown where they do not say even that.
        """
        if not self.found:
            return "not critical"
        if self.spectrum.largest <= ROUNDING:
            return "degenerate"
        lowest, highest = ("minimum", "maximum") if self.gradient else ("sink", "source")
        if np.any(np.real(self.rates) < -self._zero) and len(self.growing):
            return "saddle"
        if self.spectrum.complete:
            return highest if len(self.growing) else lowest
        if len(self.growing):
            return "unstable"
        return lowest if self.index == 0 else "unknown"

    def __repr__(self) -> str:
        blocks = ", ".join(f"{name} {np.shape(block)}" for name, block in self.params.items())
        loss = "" if self.loss is None else f", loss {self.loss:.6g}"
        when = "" if self.t is None else f", t {self.t:.6g}"
        rates = " ".join(f"{rate:.4g}" for rate in np.real(self.growing)[:FASTEST]) or "none"
        count = "unknown" if self.index is None else self.index
        said = f"{self.kind}{when}{loss}, |F| {self.residual:.1e}, distance {self.distance:.3g}, index {count}"
        return f"CriticalPoint({said}, growing rates {rates}; {blocks})"

    def json(self) -> dict[str, Any]:
        named = ("t", "kind", "index", "flat", "residual", "distance", "loss")
        growing = [float(rate) for rate in np.real(self.growing)[:FASTEST]]
        return {**{name: getattr(self, name) for name in named}, "rates": growing}


def critical_point(
    what: Objective | Field,
    params: Params,
    rates: Mapping[str, float] | None = None,
    *,
    least_length: float = 0.0,
    t: float | None = None,
) -> CriticalPoint:
    """The critical point that least squares on F finds from `params`.

    Symmetries make critical points orbits and the Jacobian singular there; damped Newton takes steps of least norm, so the
    member of the orbit that is found is one near the start. Where |F| has no zero nearby the residual says so. Its distance
    is relative to its norm, but at least to `least_length`, by default that of `params`: the origin has none.
    """
    near = Derivatives(what, params, rates)
    start = near.layout.pack(params)
    return _described(near, refine(near, start), start, least_length, t)


def _described(near: Derivatives, vector: np.ndarray, start: np.ndarray, least_length: float, t: float | None) -> CriticalPoint:
    point, objective = near.layout.unpack(vector), near.field.objective
    length = max(float(np.linalg.norm(vector)), least_length or float(np.linalg.norm(start)), 1e-300)
    return CriticalPoint(
        params=point,
        residual=float(np.linalg.norm(near.velocity(vector))),
        distance=float(np.linalg.norm(vector - start)) / length,
        spectrum=spectrum_at(near, vector, FASTEST),
        gradient=objective is not None,
        loss=float(objective.value(point)) if objective is not None else None,
        t=t,
    )


def critical_points(run: Run, what: Objective | Field, rates: Mapping[str, float] | None = None) -> list[CriticalPoint]:
    """The critical points a run passed by: from every slow point, and from the end where the run is still slowing.

    A run leaves a saddle along what grows there while the rest still approaches it, so where the slowest frame leads to no
    close point, frames up to the next peak of |F| are tried as well, and the point nearest to the slow frame is kept.
    """
    chosen = rates if rates is not None else run.spec["dynamics"].get("rates", {})
    squares = sum(np.sum(np.square(run.params[name]).reshape(run.frames, -1), axis=1) for name in run.params)
    length = ORIGIN * float(np.sqrt(np.max(squares)))
    speed = run.series["speed"]
    frames = slow_frames(speed)
    near = Derivatives(what, run.at(0), chosen)
    found = []
    for frame, following in zip(frames, [*frames[1:], run.frames], strict=True):
        peak = frame + int(np.argmax(speed[frame:following]))
        starts = np.unique(np.linspace(frame, peak, SEARCHES).astype(int))
        vector = _nearest(near, [near.layout.pack(run.at(int(i))) for i in starts], length)
        found.append(_described(near, vector, near.layout.pack(run.at(frame)), length, float(run.time[frame])))
    return found


def _nearest(near: Derivatives, starts: list[np.ndarray], least_length: float) -> np.ndarray:
    """The zero of F nearest to the first start that is found from any; without one, where the search from the first ended."""
    first = best = refine(near, starts[0])

    def away(vector: np.ndarray) -> float:
        if not np.linalg.norm(near.velocity(vector)) <= CRITICAL:
            return np.inf
        return float(np.linalg.norm(vector - starts[0])) / max(float(np.linalg.norm(vector)), least_length, 1e-300)

    for start in starts[1:]:
        if away(best) <= CLOSE:
            break
        best = min(best, refine(near, start), key=away)
    return best if away(best) < np.inf else first


def slow_frames(speed: np.ndarray) -> list[int]:
    """Frames at local minima of |F| with a markedly larger |F| on both sides; an end still slowing counts, a start too."""
    from scipy.signal import find_peaks

    logs = -np.log(np.maximum(speed, CRITICAL))  # below it, only rounding moves
    ends = np.concatenate([[logs.min() - 1], logs, [logs.min() - 1]])
    return (find_peaks(ends, prominence=-np.log(SLOWER))[0] - 1).tolist()
