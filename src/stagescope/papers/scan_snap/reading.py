"""The reading of a scan-and-snap run: its class attention, its stages, and the companion runs that its claims need."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import frames
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import Every, LogSpaced, Record, Uniform
from stagescope.keys import key
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import replayed
from stagescope.papers.scan_snap.evidence import LIMITS, REPLICAS, Companions, Evidence
from stagescope.papers.scan_snap.loss import PairwisePopulation
from stagescope.papers.scan_snap.observables import ClassAttention, Reader, class_attention, follow, law_of
from stagescope.papers.scan_snap.sampled import PairwiseSampled
from stagescope.papers.scan_snap.stages import Averages, detect
from stagescope.params import Layout, Params
from stagescope.runs.run import Run
from stagescope.spec import build


@dataclass(frozen=True)
class Resolution:
    """How densely a run must be recorded for its events; a coarser run is replayed with more frames."""

    move: float = 0.02  # largest motion of attention, |c - c'|_1, between two frames
    speed: float = 0.05  # largest change of the attention speed between two frames, relative to its peak
    most_steps: int = 3000  # a descent up to this long is replayed at every step, a longer one at so many steps
    replica: int = 120  # frames of a replica: 2 % of the time apart at most where it is read, less than its noise
    per_decade: int = 400  # frames for each factor of ten in time of a replayed flow


RESOLUTION = Resolution()


def dense_attention(run: Run) -> ClassAttention:
    """Class attention at a resolution that does not depend on how densely the run was recorded.

    A run that is recorded too coarsely is replayed from its first frame. This is exact: spec and first frame determine it.
    """
    curves = class_attention(run)
    if _fine(curves) or run.frames < 2:
        return curves
    if run.clock == "t" and "step" not in run.series:
        return _replayed_attention(run, natural_grid(run))
    if np.all(np.diff(run.step) == 1):
        return curves
    return _replayed_attention(run, _steps_kept(run))


def _replayed_attention(run: Run, record: Record) -> ClassAttention:
    """Class attention of a replay, of which only the tokens of the classes are kept."""
    law = law_of(run)
    reader = Reader(law)

    def seen() -> Iterator[tuple[float, Params]]:
        for clock, params in replayed(run, record):
            reader.see(params)
            yield clock[run.clock], params

    return follow(law, run.spec["dynamics"], run.clock, seen(), lambda: reader.readout)


def _steps_kept(run: Run) -> Record:
    """Every step of a short descent, and so many of a longer one."""
    most = RESOLUTION.most_steps
    return Every() if int(run.step[-1]) <= most else LogSpaced(frames=most)


def natural_grid(run: Run) -> LogSpaced:
    """Equally many frames per decade, from well before the shortest time scale, 1 / (largest rate), to the end."""
    last = float(run.t[-1])
    rates = [rate for rate in (1.0, *run.spec["dynamics"]["rates"].values()) if rate > 0]
    first = min(1e-4 * last, 1e-3 / max(rates))
    return LogSpaced(frames=max(100, int(RESOLUTION.per_decade * np.log10(last / first))), first=first)


def _fine(curves: ClassAttention) -> bool:
    moved = curves.mean(curves.supports.sums(np.abs(np.diff(curves.c, axis=0))))
    speed = curves.mean(curves.speed)
    changed = np.abs(np.diff(speed)) / (speed.max() or 1.0)
    return bool(np.max(moved, initial=0) < RESOLUTION.move and np.max(changed, initial=0) < RESOLUTION.speed)


def _winners(run: Run, curves: ClassAttention) -> list[str]:
    """The name of the strongest distinct token of each class at the end."""
    law = law_of(run)
    return [law.process.label(law.model.keys[column]) for column in curves.supports.key[curves.winners]]


def _not_read() -> NoReturn:
    raise NotImplementedError("the decoder of a replica is not read")


class ScanSnapReading(Reading):
    """Class attention at a fine resolution, its stages, and the companion runs that the claims need.

    A descent on sampled batches is made `REPLICAS` times more, on other batches: the spread is the noise of its events and
    scores. This costs as much as that many runs, and is done when stages or claims are asked for.
    """

    @cached_property
    def curves(self) -> ClassAttention:
        return dense_attention(self.run)

    @cached_property
    def stages(self) -> Stages:
        run, curves = self.run, self.curves
        moves = bool(np.max(curves.farthest) > LIMITS.motion)
        others = [Averages.of(each) for each in self.replicas]
        named = _winners(run, curves)
        facts = {"moves": moves, "winners": named, "clock": run.clock, "status": run.status}
        return detect(Averages.of(curves), **facts, replicas=others)

    @property
    def replicas(self) -> list[ClassAttention]:
        """Class attention of the same descent on other batches; none for a run without batches or that did not reach its end."""
        if not isinstance(self.law, PairwiseSampled) or not self.run.done or self.run.frames < 2:
            return []
        return [self.companion(self.replica, number) for number in range(REPLICAS)]

    def replica(self, number: int) -> ClassAttention:
        """The same steps on other batches, without their decoder. A random start is drawn anew: seeds differ in it too."""
        law, run = self.law, self.run
        seed = int(key(law.seed, "replica", number).integers(2**62))
        scale = (run.config or {}).get("init_scale", 0.0)
        start = law.model.init(seed, scale) if scale else run.at(0)
        dynamics = build(run.spec["dynamics"]).shortened(int(run.step[-1]))
        other, last = law.model_copy(update={"seed": seed}), int(run.step[-1])
        record = Every() if last <= RESOLUTION.replica else LogSpaced(frames=RESOLUTION.replica)
        layout = Layout.of(start)
        each = ((clock[run.clock], layout.unpack(vector)) for clock, vector in frames(other, start, dynamics, record=record))
        return follow(law, run.spec["dynamics"], run.clock, each, _not_read)

    @cached_property
    def evidence(self) -> Evidence:
        companions = Companions(
            rates=lambda rates, until: self.companion(self.at_rates, rates, until),
            flow=lambda until: self.companion(self.as_flow, until),
            replicas=lambda: self.replicas,
        )
        return Evidence.of(self.run, self.curves, companions if self.run.frames > 1 else None)

    def at_rates(self, rates: dict[str, float], until: float) -> Params:
        """Where the flow from the same start ends at other rates, at another time."""
        return self._end(self.field, build(self.run.spec["dynamics"]), rates, until)

    def as_flow(self, until: float) -> Params:
        """Where the gradient flow ends instead of the run's steps: same start and rates, contexts in the long-sequence limit."""
        law = self.law
        limit = PairwisePopulation(model=law.model, process=law.process) if isinstance(law, PairwiseSampled) else law
        return self._end(limit, GradientFlow(), self.run.spec["dynamics"]["rates"], until)

    def _end(self, law: Any, flow: GradientFlow, rates: dict[str, float], until: float) -> Params:
        """The last frame of a flow that nobody continues: its integrator restarts only if it is long."""
        free = {"segments": None, "restart_evaluations": None, "restart_frames": None}
        start, straight = self.run.at(0), flow.model_copy(update={"rates": rates, **free})
        last = deque(frames(law, start, straight, until=until, record=Uniform(frames=2)), maxlen=1)[0]
        return Layout.of(start).unpack(last[1])
