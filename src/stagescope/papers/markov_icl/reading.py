"""The reading of a run of in-context chains: curves, stages, near-stationary rungs, companion runs."""

from functools import cached_property
from typing import Any

from stagescope.detect.stage import Stages
from stagescope.landscape.ladder import Ladder
from stagescope.papers.markov_icl.evidence import Evidence
from stagescope.papers.markov_icl.ladder import near_stationary
from stagescope.papers.markov_icl.observables import MatchCurves, match_curves
from stagescope.papers.markov_icl.stages import detect
from stagescope.papers.reading import Reading


class MarkovReading(Reading):
    """A run of R, S, S3, F or T."""

    @cached_property
    def curves(self) -> MatchCurves:
        return match_curves(self.run)

    @cached_property
    def stages(self) -> Stages:
        return detect(self.curves, clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self.run, self.curves, self.other_runs)

    def other_runs(self, changes: list[dict[str, Any]]) -> list[Any]:
        """The evidence of the same run with options changed, one for each; an error where one could not be made."""
        return self.companions(self.changed, changes)

    def changed(self, changes: dict[str, Any]) -> Any:
        return self.beside(changes).evidence

    @property
    def has_own_ladder(self) -> bool:
        return self.evidence.model in ("R", "S") or (self.evidence.model == "F" and self.evidence.exact)

    def own_ladder(self) -> Ladder:
        rungs = near_stationary(self.evidence)
        timed = rungs if self.run.clock == "t" else tuple(rung.timeless() for rung in rungs)
        return Ladder(self.run.status, self.run.clock, timed)
