"""Read a run of scan and snap: its stages, its claims, and the runs beside it that they need."""

from functools import cached_property

import numpy as np

from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import Every, LogSpaced
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import replay
from stagescope.papers.scan_snap.evidence import MOVED, Beside, Evidence
from stagescope.papers.scan_snap.loss import PairwisePopulation
from stagescope.papers.scan_snap.observables import ClassAttention, class_attention, law_of
from stagescope.papers.scan_snap.sampled import PairwiseSampled
from stagescope.papers.scan_snap.stages import detect
from stagescope.runs.run import Run
from stagescope.spec import build

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


def _winners(run: Run, curves: ClassAttention) -> str:
    """The strongest distinct token of each class at the end, by name, for the first few classes."""
    law = law_of(run)
    tops = np.argmax(np.where(curves.distinct, curves.attention[-1], 0.0), axis=1)[:NAMED]
    names = [law.process.label(law.model.keys[column]) for column in tops]
    more = ", ..." if len(curves.prior) > NAMED else ""
    return f"strongest tokens {', '.join(names)}{more}"


class ScanSnapReading(Reading):
    """Class attention at a fine resolution, its stages, and the runs beside it that the claims need."""

    @cached_property
    def curves(self) -> ClassAttention:
        return dense_attention(self.run)

    @cached_property
    def stages(self) -> Stages:
        run, curves = self.run, self.curves
        named = ("common_mass", "top_distinct", "top_common", "speed")
        averaged = {name: curves.mean(getattr(curves, name)) for name in named}
        moved = bool(np.max(np.abs(curves.scores - curves.scores[:1])) > MOVED)
        facts = {"moved": moved, "winners": _winners(run, curves), "clock": run.clock, "status": run.status}
        return detect(curves.time, **averaged, **facts)

    @cached_property
    def evidence(self) -> Evidence:
        beside = Beside(
            rates=lambda rates, until: self.companion(self.at_rates, rates, until),
            flow=lambda until: self.companion(self.as_flow, until),
        )
        return Evidence.of(self.run, self.curves, beside if self.run.frames > 1 else None)

    def at_rates(self, rates: dict[str, float], until: float) -> Run:
        """A flow from the same start with other rates to another end."""
        dynamics = build(self.run.spec["dynamics"]).model_copy(update={"rates": rates})
        return evolve(self.field, self.run.at(0), dynamics, until=until, progress=False)

    def as_flow(self, until: float) -> Run:
        """The gradient flow in place of the run's steps: same start, same rates, contexts in the long-sequence limit."""
        law = self.law
        limit = PairwisePopulation(model=law.model, process=law.process) if isinstance(law, PairwiseSampled) else law
        dynamics = GradientFlow(rates=self.run.spec["dynamics"]["rates"])
        return evolve(limit, self.run.at(0), dynamics, until=until, progress=False)
