"""Read a run of incremental learning: students of a lagged chain, and the regression models."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np

from stagescope.claims.ledger import Ledger
from stagescope.detect.stage import Stages
from stagescope.dynamics.record import LogSpaced
from stagescope.papers.incremental.claims import HEAD_CLAIMS, STOPPING_CLAIMS
from stagescope.papers.incremental.companions import clock, companions
from stagescope.papers.incremental.evidence import LADDER, Evidence, Task
from stagescope.papers.incremental.observables import LagCurves, lag_curves
from stagescope.papers.incremental.regression.observables import HeadCurves, head_curves
from stagescope.papers.incremental.regression.sampled import RegressionSampled
from stagescope.papers.incremental.stages import Heads, detect
from stagescope.papers.incremental.stopping.claims import StoppingEvidence
from stagescope.papers.incremental.students.positional_loss import HeadsLoss
from stagescope.papers.incremental.transitions import no_ladder, transitions
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import replay
from stagescope.runs.run import Run


def _lag_heads(curves: LagCurves) -> Heads:
    return Heads(
        curves.time,
        curves.excess,
        curves.steps,
        curves.agreement,
        curves.contrast,
        curves.mass,
        nearest=lambda frame: int(np.argmin(curves.divergences(frame))),
    )


class IncrementalReading(Reading):
    """The part that students and regression models share: heads that descend a ladder of levels."""

    @abstractmethod
    def heads_of(self, run: Run) -> Heads:
        """Loss, levels and heads of a run of this kind."""

    @cached_property
    def stages(self) -> Stages:
        return detect(self.heads_of(self.run), clock=self.run.clock, status=self.run.status)

    @cached_property
    def ledger(self) -> Ledger:
        """All claims; those about early stopping have evidence of their own."""
        stops = Ledger.of(self.run, STOPPING_CLAIMS, StoppingEvidence(self.run))
        return Ledger(self.run.status, self.run.clock, (*self.judge(HEAD_CLAIMS), *stops))

    @cached_property
    def dense(self) -> Run:
        """The run, replayed with more frames if a transition falls between two of its frames."""
        return _dense_heads(self.run, self.heads_of)


class StudentReading(IncrementalReading):
    """A student of a lagged chain: attention on lag groups, and the levels of the restricted classes."""

    def heads_of(self, run: Run) -> Heads:
        return _lag_heads(lag_curves(run))

    @cached_property
    def dense(self) -> Run:
        """A replay costs as much as the run: only positional heads are replayed."""
        return _dense_heads(self.run, self.heads_of) if isinstance(self.law, HeadsLoss) else self.run

    @cached_property
    def curves(self) -> LagCurves:
        return lag_curves(self.dense)

    @cached_property
    def evidence(self) -> Evidence:
        seen, curves = self.dense, self.curves
        return Evidence(seen, _lag_heads(curves), _task(curves), curves.learned, companions(seen), clock(seen))


def _task(curves: LagCurves) -> Task:
    law, levels = curves.law, curves.levels
    known = law.fresh or law.labels == "soft"
    return Task(
        law.process.importances,
        law.model.heads,
        span=max(map(len, law.process.groups)),
        parameters=len(law.process.groups) * law.process.vocab**2,
        disjoint=law.process.disjoint,
        targets=None if known else law.sequences * law.model.targets,
        fitted=levels.converged,
        predicts=True,
        errors=tuple(np.abs((levels.losses - levels.losses[-1]) - (levels.training - levels.training[-1])).tolist()),
    )


class RegressionReading(IncrementalReading):
    """A run of the regression models: heads on positions, and plateaus in closed form."""

    def heads_of(self, run: Run) -> Heads:
        return _flow_heads(head_curves(run))

    @cached_property
    def curves(self) -> HeadCurves:
        return head_curves(self.dense)

    @cached_property
    def evidence(self) -> Evidence:
        seen, curves = self.dense, self.curves
        forms = None if isinstance(self.law, RegressionSampled) else curves.forms
        task = Task(curves.model.gains, curves.model.heads, forms=forms)
        return Evidence(seen, _flow_heads(curves), task, curves.learned, companions(seen), clock(seen))


def _flow_heads(curves: HeadCurves) -> Heads:
    parts = (curves.agreement, curves.contrast, curves.mass)
    return Heads(curves.time, curves.loss, curves.forms.levels, *parts, nearest=lambda _: None)


def _dense_heads(run: Run, heads_of: Callable[[Run], Heads]) -> Run:
    """A run, replayed from its first frame with 800 frames if its loss falls by a tenth of the ladder between two frames."""
    heads = heads_of(run)
    if no_ladder(heads.levels) is not None:  # there are no transitions to resolve
        return run
    first = transitions(heads.time, heads.loss, heads.levels)[0]
    jump = np.max(np.abs(np.diff(heads.loss)), initial=0) / (heads.levels[0] - heads.levels[-1])
    early = run.frames if first is None else int(np.sum(heads.time < first))
    if run.frames < 2 or (jump <= 0.1 and early >= LADDER.before):
        return run
    return replay(run, LogSpaced(frames=800, first=None if "step" in run.series else float(run.t[-1]) * 1e-5))
