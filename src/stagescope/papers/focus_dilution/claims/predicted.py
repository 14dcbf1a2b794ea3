"""Focus and dilution before the run: the saddle path from its start against what it did."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.detect.events import around
from stagescope.landscape.saddle_path import Predicted, SaddlePath, plain_time
from stagescope.papers.focus_dilution.claims.cycle import LIMITS as CYCLE
from stagescope.papers.focus_dilution.evidence import Evidence, beside

COST = "the saddle path from the start, once for all claims"


@dataclass(frozen=True)
class PathTolerances:
    """From which starts a path is claimed, and how far its times may be off, relative, beyond its own interval."""

    largest: float = 1.2e-3  # rms of a start drawn with standard deviation 1e-3 is below this
    at_largest: float = 0.05  # what directions that open together do to each other, at 1e-3
    least: float = 0.01  # at 1e-4 and below
    events: int = 3  # E1 and Q1 come on every chain: a sequence is of three events at least
    timed: int = 2  # events whose times are compared, at least
    longer: float = 2.0  # a run shows that no event follows if it lasts this many times as long as the last one took


LIMITS = PathTolerances()


def room(start: float) -> float:
    """The relative tolerance of a time: .05 at 1e-3, .01 at 1e-4, and a power of the start between them."""
    return float(np.clip(LIMITS.at_largest * (start / 1e-3) ** 0.7, LIMITS.least, LIMITS.at_largest))


@dataclass(frozen=True)
class Beside:
    """A path beside the openings of a run that ends at `end`.

    `due` are events that must have come by then, `possible` those that may have; both with their intervals and tolerance.
    """

    path: SaddlePath
    times: dict[str, float]
    end: float
    room: float

    @classmethod
    def of(cls, evidence: Evidence) -> "Beside | None":
        path = evidence.predicted[0] if evidence.start <= LIMITS.largest else None
        if path is None:
            return None
        found = {name: when for name, when in evidence.openings.items() if when is not None}
        return cls(path, found, float(evidence.curves.time[-1]), room(evidence.start))

    def predicted(self, name: str) -> tuple[float, float, float] | None:
        """Time, low and high; None for an event that is not predicted."""
        event = self.path.events[name]
        return None if event.t is None or event.low is None or event.high is None else (event.t, event.low, event.high)

    @property
    def due(self) -> list[str]:
        return [name for name in self.path.sequence if (at := self.predicted(name)) and at[2] + self.room * at[0] < self.end]

    @property
    def possible(self) -> list[str]:
        return [name for name in self.path.sequence if (at := self.predicted(name)) and at[1] - self.room * at[0] <= self.end]

    @property
    def missing(self) -> list[str]:
        """Events that must have come and did not."""
        return [name for name in self.due if name not in self.times]

    @property
    def excluded(self) -> list[str]:
        """Events that came though the path says that they never come, or later; in order of time."""
        came = sorted(self.times, key=lambda name: self.times[name])
        return [name for name in came if name not in self.possible and (self.predicted(name) or self._too_early(name))]

    def _too_early(self, name: str) -> bool:
        return self.times[name] < (1 - self.room) * self.path.events[name].beyond

    @property
    def ahead(self) -> str:
        """What is predicted after the end of the run."""
        late = [f"{name} at {self.path.events[name].t:.4g}" for name in self.path.sequence if name not in self.possible]
        return f"; not reached yet, predicted after the end: {', '.join(late)}" if late else ""


def _regime(further: Callable[[Beside], str]) -> Callable[[Evidence], Regime]:
    """A population flow from a start of rms 1e-3 or less that has a path, and what `further` asks: a sentence where it fails."""

    def regime(evidence: Evidence) -> Regime:
        failed = evidence.failures()
        if not failed and evidence.start > LIMITS.largest:
            failed.append(f"initial rms {evidence.start:.1e} is above {LIMITS.largest:g}, where directions open together")
        if not failed and evidence.predicted[0] is None:
            failed.append(evidence.predicted[1])
        found = None if failed else Beside.of(evidence)
        if found is not None and (why := further(found)):
            failed.append(why)
        return Regime(not failed, "; ".join(failed) or f"flow from a start of rms {evidence.start:.1e}")

    return regime


def _long_enough(found: Beside) -> str:
    if len(found.due) >= LIMITS.events or found.excluded:
        return ""
    return f"{len(found.due)} events are predicted before the end of the run, and a sequence needs {LIMITS.events}{found.ahead}"


def _two_due(found: Beside) -> str:
    """E1 alone shows the rate at the origin, which does not depend on how tokens follow each other."""
    few = len(found.due) < LIMITS.timed and not found.excluded
    return f"fewer than {LIMITS.timed} events are predicted before the end of the run{found.ahead}" if few else ""


def _sequence(evidence: Evidence) -> Comparison:
    """Exactly the events that are predicted by the end of the run, in their order; intervals that overlap leave it open."""
    found = Beside.of(evidence)
    assert found is not None
    order = [name for name in sorted(found.times, key=lambda name: found.times[name]) if found.predicted(name)]
    wanted = [name for name in found.path.sequence if name in found.due or name in order]
    swapped = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :] if wanted.index(a) > wanted.index(b)]
    clear = [(a, b) for a, b in swapped if _low(found.path.events[a]) > _high(found.path.events[b])]
    said = [f"{name} did not come" for name in found.missing]
    said += [f"{name} came, which is not predicted by then" for name in found.excluded]
    said += [f"{a} came before {b}" for a, b in clear]
    holds = False if said else None if swapped else True
    doubt = [f"the intervals of {b} and {a} overlap, and they came the other way round" for a, b in swapped]
    reason = "; ".join(said or doubt) or f"{len(order)} events in the order predicted"
    came = " ".join(sorted(found.times, key=lambda name: found.times[name]))
    return Comparison(" ".join(wanted), came, "the same sequence", holds, f"{reason}{found.ahead}")


def _low(event: Predicted) -> float:
    return -np.inf if event.low is None else event.low


def _high(event: Predicted) -> float:
    return np.inf if event.high is None else event.high


def _times(evidence: Evidence) -> Comparison:
    """The event that is furthest off, in tolerances; all must be within theirs, and one that is missing has not come in time."""
    found = Beside.of(evidence)
    assert found is not None
    compared = {name: _time(evidence, found, name) for name in found.path.sequence if name in found.times}
    for name in found.missing:
        t, low, high = found.predicted(name) or (0.0, 0.0, 0.0)
        words = f"{name}, predicted at {t:.4g}, has not come by {found.end:.4g}"
        compared[name] = Comparison(t, None, found.room * t, False, words, (high - low) / 2, unit="t")
    for name in found.excluded:
        words = f"{name} came at {found.times[name]:.4g}, and is not predicted by then"
        compared[name] = Comparison(None, found.times[name], None, False, words, unit="t")
    worst = max(compared, key=lambda name: _off(compared[name]))
    verdicts = {each.holds for each in compared.values()}
    holds = False if False in verdicts else None if None in verdicts else True
    listed = ", ".join(f"{name} {_number(each.measured)} ({_number(each.predicted)})" for name, each in compared.items())
    at = compared[worst]
    reason = f"worst at {worst}: {at.reason}; measured (predicted): {listed}{found.ahead}"
    return Comparison(at.predicted, at.measured, at.tolerance, holds, reason, at.predicted_error, at.measured_error, "t")


def _time(evidence: Evidence, found: Beside, name: str) -> Comparison:
    measured, (t, low, high) = found.times[name], found.predicted(name) or (0.0, 0.0, 0.0)
    before, after = around(evidence.curves.time, measured)
    errors: Any = {"predicted_error": (high - low) / 2, "measured_error": (after - before) / 2}
    return agreement(t, measured, found.room * t, f"measured/predicted = {measured / t:.4f}", **errors, unit="t")


def _off(compared: Comparison) -> float:
    """By how many tolerances a time is off; without a measurement by more than any."""
    if not isinstance(compared.measured, float) or not isinstance(compared.predicted, float):
        return np.inf
    return abs(compared.measured - compared.predicted) / float(compared.tolerance or 1.0)


def _number(value: float | str | None) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-"


def _stops(evidence: Evidence) -> Regime:
    """The path ends above the floor of the loss with events that are absent, and the run is long enough to show it."""
    seen, chain = Beside.of(evidence), evidence.law.process
    if seen is not None and not any(event.absent for event in seen.path.events.values()):
        return Regime(False, "applies only where the path says of an event that it does not come", applies=False)
    if seen is not None and seen.path.legs[-1].loss - chain.floor() <= CYCLE.floor * (chain.unigram_loss() - chain.floor()):
        return Regime(False, "applies only to paths that end above the floor of the loss", applies=False)
    return _regime(_short)(evidence)


def _short(found: Beside) -> str:
    last = max([0.0, *(event.t or 0.0 for event in found.path.events.values())])
    known = min(event.beyond for event in found.path.events.values() if event.absent)
    wanted = f"before {LIMITS.longer:g} times that of the last event, {last:.4g}"
    if known < LIMITS.longer * last:
        return f"the end of the path is known up to t={plain_time(known)}, {wanted}"
    return "" if found.end >= LIMITS.longer * last else f"the run ends at t={plain_time(found.end)}, {wanted}"


def _critical(evidence: Evidence) -> Comparison:
    """Of the events that are absent none has come while the path is known, and all others have."""
    found = Beside.of(evidence)
    assert found is not None
    absent = [name for name, event in found.path.events.items() if event.absent]
    came = found.excluded
    wanted, shown = (" ".join(names) or "no event" for names in (found.due, sorted(found.times, key=lambda n: found.times[n])))
    reason = next(event.reason for event in found.path.events.values() if event.absent)
    said = [f"{', '.join(came)} came"] * bool(came) + [f"{', '.join(found.missing)} did not come"] * bool(found.missing)
    words = "; ".join(said) or f"none of {', '.join(absent)} has come by t={plain_time(found.end)}"
    return Comparison(wanted, shown, "the same events", not said, f"{words}; the path ends: {reason}")


CLAIMS = (
    claim(
        "FD:predicted-sequence",
        "The saddle path from the start gives the sequence of events",
        _regime(_long_enough),
        _sequence,
        "start",
        "end",
        kind="prediction",
        group="saddle path",
        elsewhere=beside,
        cost=COST,
    ),
    claim(
        "FD:predicted-times",
        "The saddle path from the start gives the time of each event",
        _regime(_two_due),
        _times,
        "start",
        "end",
        kind="prediction",
        group="saddle path",
        elsewhere=beside,
        cost=COST,
    ),
    claim(
        "FD:critical-scale",
        "Where growth along the saddle path is finite, events that it does not reach do not come while its end is known",
        _stops,
        _critical,
        "start",
        "end",
        kind="prediction",
        elsewhere=beside,
        cost=COST,
    ),
)
