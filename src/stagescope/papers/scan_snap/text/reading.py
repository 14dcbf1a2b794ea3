"""The reading of a scan-and-snap run on a text: its curves, its stages, and the companion runs that its claims need."""

from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.memory import affordable
from stagescope.detect.stage import Stages
from stagescope.flow.record import Every
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.text.claims import TextEvidence
from stagescope.papers.scan_snap.text.observables import TextAttention, recorded_finely, text_attention
from stagescope.papers.scan_snap.text.stages import detect
from stagescope.readings.reading import Reading
from stagescope.readings.rebuild import companion_run


class TextSnapReading(Reading):
    """Held-out attention, its stages, and the companion runs with other steps that the claims need."""

    @property
    def replays(self) -> bool:
        """Not where frames are near enough: it takes as long as the training, and `stagescope verify --replay` does it."""
        return False

    @cached_property
    def curves(self) -> TextAttention:
        """Of the run, or of its replay where checkpoints are missing."""
        if recorded_finely(self.run):
            return text_attention(self.run)
        steps = Every(n=LIMITS.interval).steps(int(self.run.step[-1]))
        again = self.replay(steps)
        return text_attention(self.run if again is None else again.only(np.flatnonzero(np.isin(again.step, steps))))

    @cached_property
    def stages(self) -> Stages:
        return detect(self.curves, clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> TextEvidence:
        return TextEvidence(self.run, self.curves, reading=self)

    def with_steps(self, changes: dict[str, Any]) -> TextAttention:
        """The same run with another step size: same start, same batches, same number of steps."""
        dynamics, record, start = self.dynamics.model_copy(update=changes), Every(n=LIMITS.interval), self.run.at(0)
        size = sum(np.size(block) for block in start.values())
        with TemporaryDirectory(prefix="stagescope-") as folder:  # frames of a whole vocabulary are too large for memory
            out = None if affordable(record.count(dynamics.steps), size) else f"{folder}/companion"
            return text_attention(companion_run(self.field, start, dynamics, record=record, seed=self.run.seed or 0, out=out))

    @property
    def has_own_ladder(self) -> bool:
        return True

    def own_ladder(self) -> NoReturn:
        """Refused: a run on batches never comes close enough to a critical point to find it."""
        raise InputError(
            f"a run on a text ({self.type}) takes noisy steps on batches and has no saddle ladder; `stages` reads it"
        )
