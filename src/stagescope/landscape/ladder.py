"""The saddle ladder: the critical points a run passes, how it leaves each, and when theory says it should."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.errors import StagescopeError, unknown
from stagescope.fields.field import Field
from stagescope.fields.objective import Objective
from stagescope.landscape.critical import CRITICAL, FASTEST, PASSING, CriticalPoint, critical_points, slow_frames
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.growth_fit import last_rise
from stagescope.landscape.linearise import linearise
from stagescope.landscape.spectrum import spectrum
from stagescope.progress import progress_for
from stagescope.runs.run import Run

NEAR = 0.3
"""Relative distance from a critical point beyond which its linearisation is not believed."""
NO_CLOCK = "this run has no flow time, so rates cannot be compared"


@dataclass(frozen=True)
class Rung:
    """One critical point near a run.

    `t` is when the run is slowest there, `residual` is |F| at the critical point, `distance` that of the run from it at t
    (relative); where `found` is False they are of the place where the search ended. `opening` says what grows there (None:
    nothing does, or no critical point is near), `rates` how fast, fastest first; `measured_rate`, the
    cosines of the directions and the escape are the run's own. `local_rate` is what linearising at the run itself gives,
    averaged over the rise that is measured. What cannot be said is None; `note` says why.
    """

    label: str
    t: float
    residual: float
    distance: float
    loss: float | None
    opening: str | None
    rates: tuple[float, ...]
    measured_rate: float | None = None
    local_rate: float | None = None
    cosines: tuple[float, ...] = ()
    predicted_escape: float | None = None
    measured_escape: float | None = None
    note: str = ""

    @property
    def found(self) -> bool:
        """Whether the point is critical."""
        return self.residual <= CRITICAL

    @property
    def near(self) -> bool:
        """Whether linearisation may be believed: the point is critical and the run is close to it."""
        return self.found and self.distance <= NEAR

    def noted(self, sentence: str) -> "Rung":
        return replace(self, note="; ".join(part for part in (self.note, sentence) if part))

    def timeless(self) -> "Rung":
        """The same rung of a run without flow time: its rates cannot be compared with anything."""
        return replace(self, measured_rate=None, local_rate=None, predicted_escape=None).noted(NO_CLOCK)

    def __str__(self) -> str:
        rate = f"{self.opening} opens at {self.rates[0]:.4g}" if self.opening else "nothing opens"
        seen = "" if self.measured_rate is None else f" (measured {self.measured_rate:.4g})"
        note = f"; {self.note}" if self.note else ""
        away = f"{self.distance:.2g}" if self.found else "-"
        return f"{self.label:<8} t {self.t:<8.4g} distance {away:<7} {rate}{seen}{note}"


@dataclass(frozen=True)
class Ladder:
    """The rungs of a run, in the order it passes them."""

    status: str
    clock: str
    rungs: tuple[Rung, ...]

    def __iter__(self) -> Iterator[Rung]:
        return iter(self.rungs)

    def __len__(self) -> int:
        return len(self.rungs)

    def __getitem__(self, label: str) -> Rung:
        found = next((rung for rung in self.rungs if rung.label == label), None)
        if found is None:
            raise unknown("rung", label, [rung.label for rung in self.rungs])
        return found

    def __str__(self) -> str:
        return "\n".join(map(str, self.rungs))

    def json(self) -> dict[str, Any]:
        rungs = [{**asdict(rung), "rates": list(rung.rates), "cosines": list(rung.cosines)} for rung in self.rungs]
        return {"status": self.status, "clock": self.clock, "rungs": rungs}


def field_ladder(
    run: Run, what: Objective | Field, rates: Mapping[str, float] | None = None, progress: bool | None = False
) -> Ladder:
    """The ladder of any run: critical points from its slow points, and escape along their growing directions.

    `progress` shows bars, one for the searches and one for the escapes; None: on a terminal.
    """
    chosen = dict(rates if rates is not None else run.spec["dynamics"].get("rates", {}))
    frames = slow_frames(run.series["speed"], PASSING.most_slow)
    with progress_for(progress) as bar:
        bar.begin("searching critical points", PASSING.products, "products")
        points = critical_points(run, what, chosen, lambda products: bar.update(min(products, PASSING.products)))
        bar.update(PASSING.products)  # searches that succeed need fewer
    rungs = []
    with progress_for(progress) as bar:
        bar.begin("following escapes", len(points), "rungs")
        for point, frame in zip(points, frames, strict=True):
            rungs.append(_rung(run, what, chosen, point, frame, len(rungs) + 1))
            bar.update(len(rungs))
    others = len(slow_frames(run.series["speed"])) - len(frames)
    if others:
        rungs[-1] = rungs[-1].noted(f"of {others + len(frames)} slow points only the {PASSING.most_slow} most marked are used")
    return Ladder(run.status, run.clock, tuple(rungs))


def search_cost(run: Run, what: Objective | Field, rates: Mapping[str, float] | None = None) -> tuple[float, str]:
    """Seconds that the searches of `field_ladder` take at most, by timing products with J, and a sentence that says so."""
    chosen = dict(rates if rates is not None else run.spec["dynamics"].get("rates", {}))
    near = Derivatives(what, run.at(0), chosen)
    start, slow = near.layout.pack(run.at(0)), len(slow_frames(run.series["speed"], PASSING.most_slow))
    kinds = (near.jvp,) if near.dense else (near.jvp, near.vjp)
    seconds = PASSING.products * sum(_timed(kind, start) for kind in kinds) / len(kinds) if slow else 0.0
    long = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    what_for = f"searching critical points of {near.layout.size:,} parameters from {slow} slow point{'s' if slow > 1 else ''}"
    work = f"at most about {PASSING.products:,} products with the Jacobian"
    return seconds, f"{what_for}: {work}, about {long}; what opens at each is computed after that"


def _timed(product: Callable[[np.ndarray, np.ndarray], np.ndarray], vector: np.ndarray) -> float:
    product(vector, vector)  # compiles
    begun = time.perf_counter()
    product(vector, vector)
    return time.perf_counter() - begun


def _rung(run: Run, what: Objective | Field, rates: dict[str, float], point: CriticalPoint, frame: int, number: int) -> Rung:
    base: dict[str, Any] = {"t": float(run.time[frame]), "residual": point.residual, "distance": point.distance}
    near = point.found and point.distance <= NEAR
    base |= {"label": f"{number} {point.kind}" if near else f"{number}", "loss": point.loss}
    if not near:
        return Rung(**base, opening=None, rates=(), note=_drift(run, what, rates, point, frame))
    growing = tuple(float(rate) for rate in np.real(point.growing)[:FASTEST])
    if not growing:
        flat = "" if point.flat is None else f", {point.flat} flat directions"
        grows = "its fastest rates did not converge" if point.kind == "unknown" else "nothing grows"
        return Rung(**base, opening=None, rates=(), note=f"{point.kind}{flat}: {grows}")
    return Rung(**base, opening=_blocks(point.directions[0]), rates=growing, **_escape(run, what, rates, point, frame))


def _drift(run: Run, what: Objective | Field, rates: dict[str, float], point: CriticalPoint, frame: int) -> str:
    """A slow point without a critical point beside it: what the linearisation at the run itself says.

    A search that was given up shows nothing: neither that a critical point is near nor that none is.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            fastest = float(np.real(spectrum(what, run.at(frame), 1, rates).rates[0]))
        grows = f"the fastest direction grows once in {1 / fastest:.3g}" if fastest > 0 else "nothing grows there"
    except StagescopeError as error:
        grows = str(error)
    slow = f"slow (|F| {float(run.series['speed'][frame]):.1e})"
    if point.stopped and not point.found:
        return f"{slow}; whether a critical point is near is not known: {point.stopped}. At the run itself, {grows}"
    where = f"the one found is at relative distance {point.distance:.2f}" if point.found else f"|F| stays at {point.residual:.1e}"
    if point.stopped:
        return f"{slow}; {where}, nearer ones are not known: {point.stopped}. At the run itself, {grows}"
    return f"{slow}, but no critical point is near: {where}. A drift: {grows}"


def _blocks(direction: Mapping[str, np.ndarray]) -> str:
    """The parameter blocks that carry a direction, largest first."""
    shares = {name: float(np.sum(np.abs(block) ** 2)) for name, block in direction.items()}
    total = sum(shares.values())
    order = sorted(shares, key=lambda name: (-round(shares[name] / total, 3), name))
    return "+".join(name for name in order if shares[name] > 0.05 * total)


def _escape(run: Run, what: Objective | Field, rates: dict[str, float], point: CriticalPoint, frame: int) -> dict[str, Any]:
    """Measured rate, cosine and times of the escape from a critical point the run is close to."""
    if run.clock != "t":
        return {"note": NO_CLOCK}
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return _left(run, what, rates, point, frame)
    except (StagescopeError, np.linalg.LinAlgError) as error:
        return {"note": f"its escape is not predicted: {error}"}


def _left(run: Run, what: Objective | Field, rates: dict[str, float], point: CriticalPoint, frame: int) -> dict[str, Any]:
    local = linearise(what, point.params, rates)
    ends = (local.point, local.near.layout.pack(run.at(-1)))
    size = 0.1 * max(float(np.linalg.norm(end)) for end in ends)
    frames = np.arange(frame, run.frames)
    if not local.dense:
        frames = np.unique(np.linspace(frame, run.frames - 1, 100).astype(int))
    parts = np.stack([local.unstable(run.at(int(i))) for i in frames])
    amplitude, time = np.linalg.norm(parts, axis=1), run.time[frames]
    ahead = local.escape_time(run.at(frame), size)
    rise = last_rise(time, amplitude, max(size / 10, 1.01 * float(amplitude[0])), size)
    cosine = ()
    if rise is not None:
        last = int(np.searchsorted(time, rise.stop))
        foreseen = local.unstable(run.at(frame), float(time[last] - time[0]))
        cosine = (float(foreseen @ parts[last] / np.linalg.norm(foreseen) / amplitude[last]),)
    return {
        "measured_rate": None if rise is None else rise.rate,
        "cosines": cosine,
        "predicted_escape": None if ahead is None else float(time[0]) + ahead,
        "measured_escape": first_crossing(time, amplitude, size, rising=True),
    }
