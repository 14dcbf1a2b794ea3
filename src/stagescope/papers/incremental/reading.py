"""Read a run of incremental learning: students of a lagged chain, and the regression flow."""

from collections.abc import Callable

import numpy as np

from stagescope.claims.ledger import Ledger
from stagescope.detect.stage import Stages
from stagescope.dynamics.record import LogSpaced
from stagescope.papers.incremental.claims import ledger
from stagescope.papers.incremental.companions import beside, clock
from stagescope.papers.incremental.evidence import BEFORE, Evidence, Task
from stagescope.papers.incremental.forms import RegressionForms
from stagescope.papers.incremental.learned import learned_lags, learned_places
from stagescope.papers.incremental.observables import LagCurves, lag_curves
from stagescope.papers.incremental.regression.observables import HeadCurves, head_curves
from stagescope.papers.incremental.stages import Heads, detect
from stagescope.papers.incremental.transitions import no_ladder, transitions
from stagescope.papers.rebuild import replay
from stagescope.runs.run import Run

COARSE, HEAD_FRAMES = 0.1, 800
"""A run of heads is replayed where its loss falls by more than this share of its ladder between two frames."""


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


def heads_stages(run: Run) -> Stages:
    return detect(_lag_heads(lag_curves(run)), clock=run.clock, status=run.status)


def heads_check(run: Run) -> Ledger:
    """The claims on a student of a lagged chain; runs beside it where it has them."""
    cheap = run.spec["field"]["type"] == "HeadsLoss"  # a replay costs as much as the run did
    seen = _dense_heads(run, lambda made: _lag_heads(lag_curves(made))) if cheap else run
    curves = lag_curves(seen)
    law, levels = curves.law, curves.levels
    known = law.fresh or law.labels == "soft"
    task = Task(
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
    evidence = Evidence(seen, _lag_heads(curves), task, learned_lags(curves), beside(seen), clock(seen))
    return ledger(run, evidence)


def _regression_forms(curves: HeadCurves) -> RegressionForms:
    model = curves.model
    return RegressionForms(model.gains, model.positions, model.heads * model.copies, curves.mirror)


def _flow_heads(curves: HeadCurves) -> Heads:
    parts = (curves.agreement, curves.contrast, curves.mass)
    return Heads(curves.time, curves.loss, _regression_forms(curves).levels, *parts, nearest=lambda _: None)


def regression_stages(run: Run) -> Stages:
    return detect(_flow_heads(head_curves(run)), clock=run.clock, status=run.status)


def regression_check(run: Run) -> Ledger:
    seen = _dense_heads(run, lambda made: _flow_heads(head_curves(made)))
    curves = head_curves(seen)
    forms = None if "batch" in seen.spec["field"] else _regression_forms(curves)
    task = Task(curves.model.gains, curves.model.heads, forms=forms)
    evidence = Evidence(seen, _flow_heads(curves), task, learned_places(curves), beside(seen), clock(seen))
    return ledger(run, evidence)


def _dense_heads(run: Run, heads_of: Callable[[Run], Heads]) -> Run:
    """A run, replayed from its first frame where it was recorded so coarsely that a transition falls between two frames."""
    heads = heads_of(run)
    if no_ladder(heads.levels) is not None:  # there are no transitions to resolve; the claims say so
        return run
    first = transitions(heads.time, heads.loss, heads.levels)[0]
    jump = np.max(np.abs(np.diff(heads.loss)), initial=0) / (heads.levels[0] - heads.levels[-1])
    early = run.frames if first is None else int(np.sum(heads.time < first))
    if run.frames < 2 or (jump <= COARSE and early >= BEFORE):
        return run
    return replay(run, LogSpaced(frames=HEAD_FRAMES, first=None if "step" in run.series else float(run.t[-1]) * 1e-5))
