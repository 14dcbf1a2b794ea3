"""Read a run of scan and snap on a text: its stages, its claims, and the runs beside it that they need."""

from functools import cached_property
from typing import Any, NoReturn

from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.record import Every
from stagescope.errors import InputError
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended, replay
from stagescope.papers.scan_snap.text import stages
from stagescope.papers.scan_snap.text.evidence import TextEvidence
from stagescope.papers.scan_snap.text.observables import (
    INTERVAL,
    TextAttention,
    TopicAttention,
    recorded_finely,
    text_attention,
)
from stagescope.runs.run import Run
from stagescope.spec import build


def dense_attention(run: Run) -> TextAttention:
    """Held-out attention of a run, replayed from its first frame where checkpoints are missing: that is exact."""
    return text_attention(run if recorded_finely(run) else replay(run, Every(n=INTERVAL)))


class TextSnapReading(Reading):
    """Held-out attention, its stages, and the runs with other steps that the claims need."""

    @cached_property
    def curves(self) -> TextAttention:
        return dense_attention(self.run)

    @cached_property
    def stages(self) -> Stages:
        curves = self.curves
        masses = (curves.common_mass, curves.distinct_mass) if isinstance(curves, TopicAttention) else None
        return stages.detect(curves, masses, clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> TextEvidence:
        return TextEvidence(
            self.run,
            self.curves,
            at_rate=lambda rate: self.companion(self.with_steps, {"lr": rate}),
            constant=lambda: self.companion(self.with_steps, {"half_life": None}),
        )

    def with_steps(self, changes: dict[str, Any]) -> TextAttention:
        """The same run with other steps: same start, same batches, same number of them."""
        dynamics = build(self.run.spec["dynamics"]).model_copy(update=changes)
        record = Every(n=INTERVAL)
        made = evolve(self.field, self.run.at(0), dynamics, record=record, seed=self.run.seed or 0, progress=False)
        return text_attention(ended(made))

    @property
    def has_own_ladder(self) -> bool:
        return True

    def own_ladder(self) -> NoReturn:
        """Refused: a critical point of a loss on batches is never still enough to be found."""
        raise InputError(f"a run on a text ({self.type}) moves by noisy steps and has no ladder; `stages` reads it")
