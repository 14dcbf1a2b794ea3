"""The reading of a scan-and-snap run: its class attention, its stages, and the companion runs that its claims need."""

from collections import deque
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from stagescope.core.params import Layout, Params, key
from stagescope.detect.stage import Stages
from stagescope.flow.evolve import frames
from stagescope.flow.record import Every, LogSpaced, Record, Uniform
from stagescope.papers.scan_snap.evidence import Evidence
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.loss import PairwisePopulation, PairwiseSampled
from stagescope.papers.scan_snap.observables import ClassAttention, Reader, Supports, class_attention, follow, law_of
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.papers.scan_snap.stages import Averages, detect
from stagescope.readings.reading import Reading
from stagescope.readings.replay import Replay
from stagescope.runs.run import Run


def denser_record(run: Run, curves: ClassAttention) -> Record | None:
    """The frames of a run that is recorded too coarsely for its events; None where it is not."""
    motion = curves.mean(curves.supports.sums(np.abs(np.diff(curves.c, axis=0))))
    speed = curves.mean(curves.speed)
    changed = np.abs(np.diff(speed)) / (speed.max() or 1.0)
    fine = np.max(motion, initial=0) < LIMITS.move and np.max(changed, initial=0) < LIMITS.speed
    if fine or run.frames < 2:
        return None
    if run.clock == "t" and "step" not in run.series:
        return natural_grid(run)
    return None if np.all(np.diff(run.step) == 1) else _steps_record(run, LIMITS.most_steps)


def replayed_attention(law: Replay, record: Record) -> ClassAttention:
    """Class attention of a replay at the frames of a record; those of the run in between are compared, and not read."""
    run = law.run
    times = record.steps(int(run.step[-1])) if "step" in run.series else record.times(float(run.t[-1]))
    reader, time_set = Reader(law_of(run)), frozenset(times.tolist())

    def read_frames() -> Iterator[tuple[float, Params]]:
        for clock, params in law.frames(times):
            if clock.get("step", clock.get("t")) in time_set:
                reader.see(params)
                yield clock[run.clock], params

    return follow(run, read_frames(), lambda: reader.readout)


def _steps_record(run: Run, limit: int) -> Record:
    """Every step of a short descent, and so many of a longer one."""
    return Every() if int(run.step[-1]) <= limit else LogSpaced(frames=limit)


def natural_grid(run: Run) -> LogSpaced:
    """Equally many frames per decade, from well before the shortest time scale, 1 / (largest rate), to the end."""
    last = float(run.t[-1])
    rates = [rate for rate in (1.0, *run.spec["dynamics"]["rates"].values()) if rate > 0]
    first = min(1e-4 * last, 1e-3 / max(rates))
    return LogSpaced(frames=max(100, int(LIMITS.per_decade * np.log10(last / first))), first=first)


def _not_read() -> NoReturn:
    raise NotImplementedError("the decoder of a replica is not read")


class ScanSnapReading(Reading):
    """Class attention at a fine resolution, its stages, and the companion runs that the claims need.

    A descent on sampled batches is made several times more, on other batches: the spread is the noise of its events and
    scores. This costs as much as that many runs, and is done when stages or claims are asked for.
    """

    @cached_property
    def curves(self) -> ClassAttention:
        """At a resolution that does not depend on how densely the run was recorded, where its law makes its frames."""
        curves = class_attention(self.run)
        record = denser_record(self.run, curves)
        return curves if record is None else self.follow_law(lambda law: replayed_attention(law, record)) or curves

    @cached_property
    def stages(self) -> Stages:
        run, curves = self.run, self.curves
        process, keys = self.law.process, self.law.model.keys
        return detect(
            Averages.of(curves),
            moves=bool(np.max(curves.farthest) > LIMITS.rounding),
            winners=[process.label(keys[column]) for column in curves.supports.key[curves.winners]],
            clock=run.clock,
            status=run.status,
            replicas=list(map(Averages.of, self.replicas)),
        )

    @property
    def replicas(self) -> list[ClassAttention]:
        """Class attention of the same descent on other batches; none for a run without batches or that did not reach its end."""
        if not isinstance(self.law, PairwiseSampled) or not self.run.done or self.run.frames < 2:
            return []
        return [self.companion(self.replica, number) for number in range(LIMITS.replicas)]

    def replica(self, number: int) -> ClassAttention:
        """The same steps on other batches, without their decoder. A random start is drawn anew: seeds differ in it too."""
        law, run = self.law, self.run
        seed = int(key(law.seed, "replica", number).integers(2**62))
        scale = (run.config or {}).get("init_scale", 0.0)
        start = law.model.init(seed, scale) if scale else run.at(0)
        dynamics = self.dynamics.shortened(int(run.step[-1]))
        record, layout = _steps_record(run, LIMITS.replica), Layout.of(start)
        steps = frames(law.model_copy(update={"seed": seed}), start, dynamics, record=record)
        unpacked = ((clock[run.clock], layout.unpack(vector)) for clock, vector in steps)
        return follow(run, unpacked, _not_read)

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self.run, self.curves, reading=self)

    def at_rates(self, rates: dict[str, float], until: float) -> Params:
        """Where the flow from the same start ends at other rates."""
        return self._end(self.field, self.run.at(0), until, rates=rates)

    def without_start(self, until: float) -> Params:
        """Where the flow ends whose scores start at zero, on classes that have c(0) of this run for P(l|n)."""
        law, start = self.law, self.run.at(0)
        first = Supports.of_law(law)
        c = first.dense(first.attention(start["Z"][first.row, first.key]))
        column = {token: place for place, token in enumerate(law.model.keys)}
        classes = tuple(
            item.model_copy(update={"probabilities": tuple(row[[column[token] for token in item.tokens]].tolist())})
            for item, row in zip(law.process.classes, c, strict=True)
        )
        process = SequenceClasses(vocab=law.process.vocab, classes=classes, prior=law.process.prior)
        return self._end(type(law)(model=law.model, process=process), {**start, "Z": np.zeros_like(start["Z"])}, until)

    def without_residual(self, until: float) -> Params:
        """Where the flow from the same start ends without the residual connection."""
        law = PairwisePopulation(model=self.law.model, process=self.law.process)
        return self._end(law, self.run.at(0), until)

    def _end(self, law: Any, start: Params, until: float, **changes: Any) -> Params:
        """The end of a companion flow; nobody continues it, so its integrator need not restart."""
        free = {"segments": None, "restart_evaluations": None, "restart_frames": None}
        flow = self.dynamics.model_copy(update={**changes, **free})
        last = deque(frames(law, start, flow, until=until, record=Uniform(frames=2)), maxlen=1)[0]
        return Layout.of(start).unpack(last[1])
