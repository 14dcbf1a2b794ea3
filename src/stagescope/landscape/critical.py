"""Critical points: where a field vanishes, what kind of point that is, and which of them a run passed by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.spectrum import Spectrum, eigen
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
EXACT, MOST_STEPS, PATIENCE = 1e-15, 300, 30
"""The search ends at this |F|, after this many steps, or when so many of them do not halve |F|, unless it is tiny."""
HOPELESS = 1e-7


@dataclass(frozen=True)
class CriticalPoint:
    """A zero of a field with its linearisation.

    `residual` is |F| there, `distance` how far it is from where the search began, relative to the norm of the point or to
    the length a caller gives. `index` counts growing directions, `flat` those that neither grow nor decay (None where only
    a few rates are known); `t` is the time at which a run passed by.
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
    def index(self) -> int:
        return int(np.sum(np.real(self.rates) > self._zero))

    @property
    def flat(self) -> int | None:
        return int(np.sum(np.abs(np.real(self.rates)) <= self._zero)) if self.spectrum.complete else None

    @property
    def _zero(self) -> float:
        return max(FLAT * float(np.abs(self.rates).max(initial=0.0)), ROUNDING)

    @property
    def kind(self) -> str:
        """minimum, saddle or maximum of a loss; sink, saddle or source of a law that is no gradient."""
        if not self.found:
            return "not critical"
        names = ("minimum", "maximum") if self.gradient else ("sink", "source")
        if self.index == 0:
            return names[0]
        return names[1] if self.spectrum.complete and self.index + (self.flat or 0) == len(self.rates) else "saddle"

    def json(self) -> dict[str, Any]:
        named = ("t", "kind", "index", "flat", "residual", "distance", "loss")
        growing = [float(rate) for rate in np.real(self.rates)[: self.index]][:FASTEST]
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
    vector, size = refine(near, start), float(np.linalg.norm(start))
    point = near.layout.unpack(vector)
    velocity = near.velocity(vector)
    values, vectors = eigen(near, vector, FASTEST)
    directions = tuple(near.layout.unpack(vectors[:, i]) for i in range(min(FASTEST, vectors.shape[1])))
    speed = near.field.speed(near.layout.unpack(velocity))
    objective = near.field.objective
    return CriticalPoint(
        params=point,
        residual=float(np.linalg.norm(velocity)),
        distance=float(np.linalg.norm(vector - start)) / max(float(np.linalg.norm(vector)), least_length or size, 1e-300),
        spectrum=Spectrum(values, directions, speed, complete=near.dense),
        gradient=objective is not None,
        loss=float(objective.value(point)) if objective is not None else None,
        t=t,
    )


def critical_points(run: Run, what: Objective | Field, rates: Mapping[str, float] | None = None) -> list[CriticalPoint]:
    """The critical points a run passed by: from every slow point, and from the end where the run is still slowing."""
    chosen = rates if rates is not None else run.spec["dynamics"].get("rates", {})
    squares = sum(np.sum(np.square(run.params[name]).reshape(run.frames, -1), axis=1) for name in run.params)
    length = ORIGIN * float(np.sqrt(np.max(squares)))
    frames = slow_frames(run.series["speed"])
    return [critical_point(what, run.at(i), chosen, least_length=length, t=float(run.time[i])) for i in frames]


def slow_frames(speed: np.ndarray) -> list[int]:
    """Frames at local minima of |F| with a markedly larger |F| on both sides; an end still slowing counts, a start too."""
    from scipy.signal import find_peaks

    logs = -np.log(np.maximum(speed, CRITICAL))  # below it, only rounding moves
    ends = np.concatenate([[logs.min() - 1], logs, [logs.min() - 1]])
    return (find_peaks(ends, prominence=-np.log(SLOWER))[0] - 1).tolist()


def refine(near: Derivatives, start: np.ndarray) -> np.ndarray:
    """Newton steps of least norm: minimise |F + J step|^2 + damp |step|^2, the damping in proportion to |F|.

    Along the orbit of a symmetry J is of the order of |F|: an undamped step there would be as large as the parameters.
    Damping that vanishes with |F| keeps the step small and the convergence quadratic, also where zeros are not isolated.
    """
    vector, velocity, ease = start, near.velocity(start), 1.0
    sizes = [float(np.linalg.norm(velocity))]
    solve = _steps(near, vector)
    while sizes[-1] > EXACT and ease < 1e8 and len(sizes) < MOST_STEPS:
        if len(sizes) > PATIENCE and sizes[-1] > max(0.5 * sizes[-PATIENCE], HOPELESS):
            break  # a minimum of |F| that is no zero
        tried = vector + solve(velocity, ease * sizes[-1] / max(float(np.linalg.norm(vector)), 1e-300))
        found = near.velocity(tried)
        size = float(np.linalg.norm(found))
        if size < sizes[-1]:  # also false where it is not finite
            vector, velocity, ease = tried, found, max(ease / 10, 1e-6)
            sizes.append(size)
            solve = _steps(near, vector)
        else:
            ease *= 10
    return vector


def _steps(near: Derivatives, vector: np.ndarray) -> Callable[[np.ndarray, float], np.ndarray]:
    """Steps from a point as a function of F there and of the damping, which is relative to the largest rate."""
    if near.dense:
        left, values, right = np.linalg.svd(near.jacobian(vector))
        return lambda f, damp: -right.T @ (values / np.maximum(values**2 + damp * values[0], 1e-300) * (left.T @ f))
    from scipy.sparse.linalg import LinearOperator, lsmr

    make: Any = LinearOperator  # its stub does not know these arguments
    operator = make(
        (len(vector), len(vector)),
        matvec=lambda x: near.jvp(vector, np.ravel(x)),
        rmatvec=lambda x: near.vjp(vector, np.ravel(x)),
        dtype=float,
    )

    def step(f: np.ndarray, damp: float) -> np.ndarray:
        rate = float(np.linalg.norm(near.jvp(vector, f)) / np.linalg.norm(f))
        return -lsmr(operator, f, damp=float(np.sqrt(damp * rate)), atol=1e-14, btol=1e-14)[0]

    return step
