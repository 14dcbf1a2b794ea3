"""Events of focus and dilution as estimates: how far the recording, and other draws of the data, would move them [FD:stages].

An opening starts where the one before it ended, so its delay adds to theirs: along the openings in order of time variances
add. An event of a row is as late as the last opening before it, and has an error of its own. Focus and dilution of a row are
reached while the first score grows: their error is that of its walk up to them, not only up to Q1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stagescope.detect.events import Turn, around, first_crossing
from stagescope.detect.noise import TWO_SIDED, delay, flutter
from stagescope.detect.stage import Event
from stagescope.papers.focus_dilution.stages.rows import THRESHOLDS, RowCycle

if TYPE_CHECKING:
    from stagescope.papers.focus_dilution.observables import TokenCurves

Times = Mapping[str, float | None]
FIRST_CYCLE = ("focus", "dilution")


@dataclass(frozen=True)
class Draws:
    """What other draws of the data would change.

    Args:
        batches: each step sees a batch, so the curves themselves are noisy.
        apart: records nearer than this in time see steps that remember each other.
        sample: 95 % half-widths by event, from runs on other samples of the same size; empty where nothing is drawn.
    """

    batches: bool = False
    apart: float = 0.0
    sample: Mapping[str, float] = field(default_factory=dict)

    @property
    def how(self) -> str:
        parts = ["the spacing of records"]
        parts += ["the noise of batches in this run"] if self.batches else []
        parts += ["flows on other samples of pairs"] if self.sample else []
        return "interval from " + " and ".join(parts)


EXACT = Draws()


def estimates(
    curves: "TokenCurves",
    times: Times,
    begun: set[str],
    rows: Sequence[RowCycle],
    named: Mapping[str, tuple[int, Turn]],
    draws: Draws,
) -> dict[str, Event]:
    """Every event with its interval; `begun` are openings that are there at the start."""
    chain = _chain(curves, times, draws)
    openings = {name: when for name, when in times.items() if _opening(name)}
    own = {**_hovering(curves, times), **_own_errors(curves, times, rows, named, draws)} if draws.batches else {}
    found = {}
    for name, when in times.items():
        if name in begun:
            found[name] = Event.missing("at the start", f"above {THRESHOLDS.level} at the start")
        elif when is None:
            found[name] = Event.missing(how=draws.how)
        else:
            before, sample = _inherited(name, when, openings, chain, draws)
            half = math.hypot(before, own.get(name, 0.0), sample)
            low, high = around(curves.time, when)
            found[name] = Event(when, max(0.0, min(low, when - half)), max(high, when + half), how=draws.how)
    return found


def _chain(curves: "TokenCurves", times: Times, draws: Draws) -> dict[str, float]:
    """95 % half-widths of the openings from the noise of batches, added along the openings."""
    found: dict[str, float] = {}
    if not draws.batches:
        return found
    since, total = 0.0, 0.0
    for when, name in sorted((when, name) for name, when in times.items() if when is not None and _opening(name)):
        late = delay(curves.time, _logs(curves, name), math.log(THRESHOLDS.level), when, since=since, apart=draws.apart)
        total = math.hypot(total, late)
        found[name], since = total, when
    return found


def _opening(name: str) -> bool:
    return name[0] in "EQ"


def _logs(curves: "TokenCurves", name: str) -> np.ndarray:
    """The logarithm of the singular value of an opening."""
    values = curves.embedding_values if name[0] == "E" else curves.score_values
    return np.log(np.maximum(values[:, int(name[1:]) - 1], 1e-300))


def _hovering(curves: "TokenCurves", times: Times) -> dict[str, float]:
    """95 % half-widths of openings from noise that comes back: when the value could first have been at the level, and when
    its noise leaves it above."""
    found = {}
    for name, when in times.items():
        if when is None or not _opening(name):
            continue
        logs = _logs(curves, name)
        noise, level = TWO_SIDED * flutter(curves.time, logs), math.log(THRESHOLDS.level)
        early, late = (first_crossing(curves.time, logs + sign * noise, level, rising=True) for sign in (1, -1))
        found[name] = max(when - (when if early is None else early), (when if late is None else late) - when)
    return found


def _inherited(name: str, when: float, openings: Times, chain: Mapping[str, float], draws: Draws) -> tuple[float, float]:
    """Errors from batches and from the sample: the event's own, or those of the last opening before it."""
    last = name if _opening(name) else _last_opening(openings, when)[1]
    sample = draws.sample.get(name, draws.sample.get(last, 0.0))
    if name.startswith(FIRST_CYCLE):
        last = _last_opening(openings, when, but="Q1")[1]
    return chain.get(last, 0.0), sample


def _last_opening(times: Times, when: float, but: str = "") -> tuple[float, str]:
    """The last opening until then, with its time; the beginning of the run where there is none."""
    earlier = [(at, each) for each, at in times.items() if at is not None and _opening(each) and at <= when and each != but]
    return max(earlier, default=(0.0, ""))


def _own_errors(
    curves: "TokenCurves", times: Times, rows: Sequence[RowCycle], named: Mapping[str, tuple[int, Turn]], draws: Draws
) -> dict[str, float]:
    """95 % half-widths of the onset, from its own walk, and of the events of rows, from noise between records.

    Near a top of height g that falls to half within h, noise s moves the top by h (2 s/g)^(1/2) and the half by 2 h s/g. The
    walk of the first score up to there moves both.
    """
    found = {name: max((turn.stop or 0.0) - turn.low, turn.high - (turn.stop or 0.0)) for name, (_, turn) in named.items()}
    if (onset := times["onset"]) is not None:
        keys = np.log(np.maximum(curves.key_values[:, 0], 1e-300))
        since = _last_opening(times, onset)[0]
        found["onset"] = _walk(curves.time, keys, onset, since, draws.apart)
    for cycle in rows:
        if cycle.focus is None:
            continue
        row = curves.on_frequent[:, cycle.row]
        noise = TWO_SIDED * float(np.interp(cycle.focus, curves.time, flutter(curves.time, row))) / cycle.gain
        fall = (float(curves.time[-1]) if cycle.half is None else cycle.half) - cycle.focus
        near = {"focus": (cycle.focus, fall * min(1.0, 2 * noise) ** 0.5), "dilution": (cycle.half, fall * 2 * noise)}
        for kind, (at, error) in near.items():
            if at is not None:
                walk = _walk(curves.time, _logs(curves, "Q1"), at, _last_opening(times, at, but="Q1")[0], draws.apart)
                found[f"{kind}{cycle.row}"] = math.hypot(error, walk)
    return found


def _walk(time: np.ndarray, logs: np.ndarray, when: float, since: float, apart: float) -> float:
    """The 95 % half-width of the time at which a growing quantity has the value that it has at `when`."""
    return delay(time, logs, float(np.interp(when, time, logs)), when, since=since, apart=apart)
