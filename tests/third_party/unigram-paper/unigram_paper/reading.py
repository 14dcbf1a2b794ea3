"""How a run is read: its curves and its stages, each computed once."""

from functools import cached_property

import numpy as np

from stagescope.detect.stage import Stages
from stagescope.papers.reading import Reading
from unigram_paper.observables import excess
from unigram_paper.stages import detect


class UnigramReading(Reading):
    """`curves` is the excess loss at every frame; `law` is the loss, built again from the spec of the run."""

    @cached_property
    def curves(self) -> np.ndarray:
        return excess(self.run, self.law)

    @cached_property
    def stages(self) -> Stages:
        return detect(self.run.time, self.curves, clock=self.run.clock, status=self.run.status)
