"""Read a run of scan and snap: its stages, its claims, and the runs beside it that they need."""

import numpy as np

from stagescope.claims.ledger import Ledger
from stagescope.detect.stage import Stages
from stagescope.dynamics.record import Every, LogSpaced
from stagescope.papers.rebuild import as_flow, replay, variant
from stagescope.papers.scan_snap.claims import CLAIMS
from stagescope.papers.scan_snap.evidence import MOVED, Beside, Evidence
from stagescope.papers.scan_snap.observables import ClassAttention, class_attention, law_of
from stagescope.papers.scan_snap.stages import detect
from stagescope.runs.run import Run

FINE_MOVE, FINE_SPEED = 0.02, 0.05
"""A run is read as it is if between frames attention moves less than 2 % and its speed changes less than 5 % of its peak."""
DENSE_FRAMES, FRAMES_PER_DECADE = 3000, 400
NAMED = 3


def dense_attention(run: Run) -> ClassAttention:
    """Class attention at a resolution that does not depend on how densely the run was recorded.

    A run recorded too coarsely is replayed from its first frame, which is exact: the spec and the frame decide it.
    """
    curves = class_attention(run)
    if _fine(curves) or run.frames < 2:
        return curves
    if run.clock == "t" and "step" not in run.series:
        return class_attention(replay(run, _natural_grid(run)))
    if np.all(np.diff(run.step) == 1):
        return curves
    last = int(run.step[-1])
    return class_attention(replay(run, Every() if last <= DENSE_FRAMES else LogSpaced(frames=DENSE_FRAMES)))


def _natural_grid(run: Run) -> LogSpaced:
    """Frames from well before the first thing that can happen, K / rate, to the end, equally many for every decade."""
    last = float(run.t[-1])
    rates = [rate for rate in (1.0, *run.spec["dynamics"]["rates"].values()) if rate > 0]
    first = min(1e-4 * last, 1e-3 / max(rates))
    return LogSpaced(frames=max(100, int(FRAMES_PER_DECADE * np.log10(last / first))), first=first)


def _fine(curves: ClassAttention) -> bool:
    moved = curves.mean(np.abs(np.diff(curves.attention, axis=0)).sum(axis=2))
    speed = curves.mean(curves.speed)
    changed = np.abs(np.diff(speed)) / (speed.max() or 1.0)
    return bool(np.max(moved, initial=0) < FINE_MOVE and np.max(changed, initial=0) < FINE_SPEED)


def stages(run: Run) -> Stages:
    curves = dense_attention(run)
    named = ("common_mass", "top_distinct", "top_common", "speed")
    averaged = {name: curves.mean(getattr(curves, name)) for name in named}
    moved = bool(np.max(np.abs(curves.scores - curves.scores[:1])) > MOVED)
    facts = {"moved": moved, "winners": _winners(run, curves), "clock": run.clock, "status": run.status}
    return detect(curves.time, **averaged, **facts)


def _winners(run: Run, curves: ClassAttention) -> str:
    """The strongest distinct token of each class at the end, by name, for the first few classes."""
    law = law_of(run)
    tops = np.argmax(np.where(curves.distinct, curves.attention[-1], 0.0), axis=1)[:NAMED]
    names = [law.process.label(law.model.keys[column]) for column in tops]
    more = ", ..." if len(curves.prior) > NAMED else ""
    return f"strongest tokens {', '.join(names)}{more}"


def check(run: Run) -> Ledger:
    beside = Beside(
        rates=lambda rates, until: variant(run, rates, until),
        flow=lambda until: as_flow(run, until),
    )
    evidence = Evidence.of(run, dense_attention(run), beside if run.frames > 1 else None)
    return Ledger.of(run, CLAIMS, evidence)
