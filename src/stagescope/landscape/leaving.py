"""How a run leaves a slow place: by the linear law, by one of a higher order, by a drift, or by none that can be stated."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.errors import StagescopeError
from stagescope.fields.field import Field, Objective
from stagescope.landscape.critical import FASTEST, CriticalPoint
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.growth_fit import last_rise
from stagescope.landscape.linearise import Linearisation, linearise
from stagescope.landscape.local_law import LAW, LocalLaw, drift_law, linear_remainder, local_law, remainder
from stagescope.landscape.spectrum import blocks, spectrum
from stagescope.landscape.tip import find_tip
from stagescope.runs.run import Run

NEAR = 0.3
"""Relative distance from a critical point beyond which its laws are not believed."""
FURTHEST = 1.0
"""Relative distance up to which a law of a higher order is tried, since its remainder says whether it holds."""
NO_CLOCK = "this run has no flow time, so rates cannot be compared"


@dataclass(frozen=True)
class Visit:
    """A slow frame of a run and the critical point that was found from it, or where the search ended."""

    run: Run
    what: Objective | Field
    rates: Mapping[str, float]
    point: CriticalPoint
    frame: int

    @cached_property
    def near(self) -> Derivatives:
        return Derivatives(self.what, self.point.params, self.rates)

    @cached_property
    def theta(self) -> np.ndarray:
        return self.near.layout.pack(self.point.params)

    def at(self, frame: int) -> np.ndarray:
        return self.near.layout.pack(self.run.at(frame))

    @cached_property
    def start(self) -> np.ndarray:
        """The displacement of the run from the point in the slow frame."""
        return self.at(self.frame) - self.theta

    @cached_property
    def length(self) -> float:
        return max(float(np.linalg.norm(self.theta)), float(np.linalg.norm(self.at(-1))))

    @property
    def horizon(self) -> float:
        return LAW.horizon * float(self.run.time[-1])

    @cached_property
    def size(self) -> float:
        """The distance from a critical point at which an escape of a higher order ends."""
        return max(LAW.size * self.length, LAW.beyond * float(np.linalg.norm(self.start)))

    @cached_property
    def escapes(self) -> bool:
        """Whether the run, by its flow time, leaves the critical point."""
        return self.run.clock == "t" and self.left(self.theta, self.size)[0] is not None

    def left(self, origin: np.ndarray, size: float) -> tuple[float | None, np.ndarray | None]:
        """When the run is first at a distance `size` from `origin`, and its displacement in the frame after that."""
        frames = range(self.frame, self.run.frames)
        away = np.array([float(np.linalg.norm(self.at(i) - origin)) for i in frames])
        when = first_crossing(self.run.time[self.frame :], away, size, rising=True)
        if when is None:
            return None, None
        return when, self.at(self.frame + int(np.argmax(away >= size))) - origin


def leaving(visit: Visit) -> dict[str, Any]:
    """What opens at the place, the law by which the run leaves, and when: the fields of its rung that are known."""
    close = visit.point.found and visit.point.distance <= NEAR
    with np.errstate(over="ignore", invalid="ignore"):
        return _opening(visit) if close else _drift(visit)


def _opening(visit: Visit) -> dict[str, Any]:
    """What opens at a critical point close to the run, by the law of least order that holds."""
    if len(visit.point.growing):
        found = _linear(visit)
        if found["remainder"] <= LAW.linear:
            growing = tuple(float(rate) for rate in np.real(visit.point.growing)[:FASTEST])
            return {"law": "linear", "order": 1, "opening": blocks(visit.point.directions[0]), "rates": growing} | found
        if visit.run.clock != "t":
            share = f"it leaves out {found['remainder']:.0%} of F at the run"
            return {"remainder": found["remainder"], "note": f"the linear law does not hold here: {share}; {NO_CLOCK}"}
    elif not visit.escapes:
        return {"note": _rest(visit.point)}
    try:
        return _higher(visit)
    except (StagescopeError, np.linalg.LinAlgError) as error:
        return {"note": f"its escape is not predicted: {error}"}


def _rest(point: CriticalPoint) -> str:
    flat = "" if point.flat is None else f", {point.flat} flat directions"
    grows = "its fastest rates did not converge" if point.kind == "unknown" else "nothing grows"
    return f"{point.kind}{flat}: {grows}"


def _linear(visit: Visit) -> dict[str, Any]:
    """The linear escape: measured rate, cosine and times, and what the law leaves out of F."""
    first = remainder(visit.near, visit.theta, visit.start, lambda d: visit.near.jvp(visit.theta, d))
    if visit.run.clock != "t":
        return {"remainder": first, "note": NO_CLOCK}
    try:
        local = linearise(visit.what, visit.point.params, visit.rates)
        ahead = local.escape_time(visit.run.at(visit.frame), LAW.size * visit.length)
        left_out = linear_remainder(local, visit.start, ahead)
        measured = _measured(visit, local) if left_out <= LAW.linear else {}
    except (StagescopeError, np.linalg.LinAlgError) as error:
        return {"remainder": first, "note": f"its escape is not predicted: {error}"}
    when = None if ahead is None else float(visit.run.time[visit.frame]) + ahead
    return {"remainder": left_out, "predicted_escape": when, **measured}


def _measured(visit: Visit, local: Linearisation) -> dict[str, Any]:
    """Rate, cosine and escape of the growing part of the run's displacement."""
    run, frame, size = visit.run, visit.frame, LAW.size * visit.length
    frames = np.arange(frame, run.frames)
    if not local.dense:
        frames = np.unique(np.linspace(frame, run.frames - 1, 100).astype(int))
    parts = np.stack([local.unstable(run.at(int(i))) for i in frames])
    amplitude, time = np.linalg.norm(parts, axis=1), run.time[frames]
    rise = last_rise(time, amplitude, max(size / 10, 1.01 * float(amplitude[0])), size)
    cosine = ()
    if rise is not None:
        last = int(np.searchsorted(time, rise.stop))
        foreseen = local.unstable(run.at(frame), float(time[last] - time[0]))
        cosine = (_cosine(foreseen, parts[last]),)
    return {
        "measured_rate": None if rise is None else rise.rate,
        "cosines": cosine,
        "measured_escape": first_crossing(time, amplitude, size, rising=True),
    }


def _higher(visit: Visit) -> dict[str, Any]:
    """The escape by a law of order two or more, with order and coefficient at the tip of the zeros where it is reached."""
    law = local_law(visit.near, visit.theta, visit.start, visit.size, visit.horizon)
    if law.order is None or law.end is None:
        return _lawless(law, LAW.most)
    opening = blocks(visit.near.layout.unpack(law.end - visit.start))
    facts: dict[str, Any] = {"law": f"order {law.order}", "order": law.order, "opening": opening}
    tip = find_tip(visit.near, visit.at(visit.frame), NEAR * visit.length, visit.length) if visit.near.dense else None
    if tip is not None and tip.order is not None:
        facts |= {"order": tip.order, "coefficient": tip.coefficient}
    return facts | _left(visit, visit.theta, visit.size, law)


def _left(visit: Visit, origin: np.ndarray, size: float, law: LocalLaw) -> dict[str, Any]:
    """Times and direction of an escape along a law, and of the run."""
    assert law.after is not None
    assert law.end is not None
    measured, displacement = visit.left(origin, size)
    return {
        "remainder": law.remainder,
        "predicted_escape": float(visit.run.time[visit.frame]) + law.after,
        "measured_escape": measured,
        "cosines": () if displacement is None else (_cosine(law.end, displacement),),
    }


def _drift(visit: Visit) -> dict[str, Any]:
    """A slow place without a critical point beside it: the law of the field at the run itself, F kept.

    A search that was given up shows nothing: neither that a critical point is near nor that none is. Where one is known, but
    further than `NEAR`, only its own law of a higher order is stated, if that holds so far away.
    """
    facts = {"note": _slow(visit)}
    if visit.run.clock != "t" or not visit.near.dense:
        return facts
    if visit.point.found and visit.point.distance <= FURTHEST:
        facts = _from_afar(visit, facts)
        if "law" in facts:
            return facts
    here, size = visit.at(visit.frame), LAW.size * visit.length
    try:
        most = 1 if visit.left(here, size)[0] is None else LAW.most_drift
        law = drift_law(visit.near, here, size, visit.horizon, most)
    except (StagescopeError, np.linalg.LinAlgError):
        return facts
    if law.order is None:
        return _lawless(law, most, str(facts["note"]))
    note = f"{facts['note']}. The escape is a move by a tenth of the parameters, by the field there to order {law.order}"
    return {"law": "drift", "order": law.order, "note": note} | _left(visit, here, size, law)


def _from_afar(visit: Visit, facts: dict[str, Any]) -> dict[str, Any]:
    try:
        found = _higher(visit)
    except (StagescopeError, np.linalg.LinAlgError):
        return facts
    if "law" not in found:
        return facts
    return found | {"note": f"slow; {_where(visit.point)}, but its law leaves out only {found['remainder']:.2g} of F"}


def _lawless(law: LocalLaw, most: int, note: str = "") -> dict[str, Any]:
    """No law: what the best one that was tried leaves out, and why."""
    said = [note] if note else []
    if np.isfinite(law.remainder):
        said.append(f"no law up to order {most} holds here: the best leaves out {law.remainder:.2g} of F on its way")
    said += [law.why] if law.why else []
    return {"remainder": law.remainder if np.isfinite(law.remainder) else None, "note": "; ".join(said)}


def _slow(visit: Visit) -> str:
    point = visit.point
    try:
        fastest = float(np.real(spectrum(visit.what, visit.run.at(visit.frame), 1, visit.rates).rates[0]))
        grows = f"the fastest direction grows once in {1 / fastest:.3g}" if fastest > 0 else "nothing grows there"
    except StagescopeError as error:
        grows = str(error)
    slow = f"slow (|F| {float(visit.run.series['speed'][visit.frame]):.1e})"
    if point.led_away:
        return f"{slow}, but no critical point is near: {point.stopped}. A drift: {grows}"
    if point.stopped and not point.found:
        return f"{slow}; whether a critical point is near is not known: {point.stopped}. At the run itself, {grows}"
    where = _where(point)
    if point.stopped:
        return f"{slow}; {where}, nearer ones are not known: {point.stopped}. At the run itself, {grows}"
    return f"{slow}, but no critical point is near: {where}. A drift: {grows}"


def _where(point: CriticalPoint) -> str:
    return f"the one found is at relative distance {point.distance:.2f}" if point.found else f"|F| stays at {point.residual:.1e}"


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
