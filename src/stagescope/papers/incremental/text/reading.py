"""Read a run of incremental learning on a text."""

from functools import cached_property

from stagescope.detect.stage import Stages
from stagescope.papers.incremental.text.claims import Evidence
from stagescope.papers.incremental.text.observables import TextLagCurves, text_lag_curves
from stagescope.papers.incremental.text.stages import LagHeads, detect
from stagescope.papers.reading import Reading


class TextIncrementalReading(Reading):
    """Attention of the heads on each lag, and when they acquire one lag after another."""

    @cached_property
    def curves(self) -> TextLagCurves:
        return text_lag_curves(self.run)

    @cached_property
    def heads(self) -> LagHeads:
        return LagHeads(self.curves.time, self.curves.loss, self.curves.mass, self.curves.mass_agreement)

    @cached_property
    def stages(self) -> Stages:
        return detect(self.heads, clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> Evidence:
        curves = self.curves
        return Evidence(self.run, self.heads, curves.information, curves.levels, curves.held_information, curves.gain)
