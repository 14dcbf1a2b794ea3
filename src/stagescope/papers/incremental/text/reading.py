"""Read a run of incremental learning on a text."""

from stagescope.claims.ledger import Ledger
from stagescope.detect.stage import Stages
from stagescope.papers.incremental.text.claims import CLAIMS, Evidence
from stagescope.papers.incremental.text.observables import TextLagCurves, text_lag_curves
from stagescope.papers.incremental.text.stages import LagHeads, detect
from stagescope.runs.run import Run


def _heads(curves: TextLagCurves) -> LagHeads:
    return LagHeads(curves.time, curves.loss, curves.mass, curves.mass_agreement)


def stages(run: Run) -> Stages:
    return detect(_heads(text_lag_curves(run)), clock=run.clock, status=run.status)


def check(run: Run) -> Ledger:
    curves = text_lag_curves(run)
    evidence = Evidence(run, _heads(curves), curves.information, curves.levels)
    return Ledger.of(run, CLAIMS, evidence)
