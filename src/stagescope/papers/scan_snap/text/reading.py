"""The reading of a scan-and-snap run on a text: its curves, its stages, and the companion runs that its claims need."""

from functools import cached_property
from typing import Any, NoReturn

from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.record import Every
from stagescope.errors import InputError
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended, replay
from stagescope.papers.scan_snap.text.claims import TextEvidence
from stagescope.papers.scan_snap.text.observables import (
    INTERVAL,
    TextAttention,
    recorded_finely,
    text_attention,
)
from stagescope.papers.scan_snap.text.stages import detect
from stagescope.runs.run import Run
from stagescope.spec import build


def dense_attention(run: Run) -> TextAttention:
    """Held-out attention of a run; where checkpoints are missing the run is replayed from its first frame, which is exact."""
    return text_attention(run if recorded_finely(run) else replay(run, Every(n=INTERVAL)))


class TextSnapReading(Reading):
    """Held-out attention, its stages, and the companion runs with other steps that the claims need."""

    @cached_property
    def curves(self) -> TextAttention:
        return dense_attention(self.run)

    @cached_property
    def stages(self) -> Stages:
        return detect(self.curves, clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> TextEvidence:
        return TextEvidence(
            self.run,
            self.curves,
            at_rate=lambda rate: self.companion(self.with_steps, {"lr": rate}),
            constant=lambda: self.companion(self.with_steps, {"half_life": None}),
        )

    def with_steps(self, changes: dict[str, Any]) -> TextAttention:
        """The same run with another step size: same start, same batches, same number of steps."""
        dynamics = build(self.run.spec["dynamics"]).model_copy(update=changes)
        record = Every(n=INTERVAL)
        made = evolve(self.field, self.run.at(0), dynamics, record=record, seed=self.run.seed or 0, progress=False)
        return text_attention(ended(made))

    @property
    def has_own_ladder(self) -> bool:
        return True

    def own_ladder(self) -> NoReturn:
        """Refused: a run on batches never comes close enough to a critical point to find it."""
        raise InputError(
            f"a run on a text ({self.type}) takes noisy steps on batches and has no saddle ladder; `stages` reads it"
        )
