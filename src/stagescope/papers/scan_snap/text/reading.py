"""Read a run of scan and snap on a text: its stages, its claims, and the runs beside it that they need."""

from typing import Any

from stagescope.claims.ledger import Ledger
from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.record import Every
from stagescope.errors import InputError, StagescopeError
from stagescope.landscape.ladder import Ladder
from stagescope.papers.rebuild import replay
from stagescope.papers.scan_snap.text import stages as text_snap
from stagescope.papers.scan_snap.text.claims import CLAIMS
from stagescope.papers.scan_snap.text.evidence import TextEvidence
from stagescope.papers.scan_snap.text.observables import INTERVAL, TextAttention, TopicAttention, recorded_finely, text_attention
from stagescope.runs.run import Run
from stagescope.spec import build


def dense_attention(run: Run) -> TextAttention:
    """Held-out attention of a run, replayed from its first frame where checkpoints are missing: that is exact."""
    return text_attention(run if recorded_finely(run) else replay(run, Every(n=INTERVAL)))


def stages(run: Run) -> Stages:
    curves = dense_attention(run)
    masses = (curves.common_mass, curves.distinct_mass) if isinstance(curves, TopicAttention) else None
    return text_snap.detect(curves, masses, clock=run.clock, status=run.status)


def check(run: Run) -> Ledger:
    evidence = TextEvidence(
        run,
        dense_attention(run),
        at_rate=lambda rate: _beside(run, {"lr": rate}),
        constant=lambda: _beside(run, {"half_life": None}),
    )
    return Ledger.of(run, CLAIMS, evidence)


def ladder(run: Run) -> Ladder:
    """Refused: a critical point of a loss on batches is never still enough to be found."""
    raise InputError(f"a run on a text ({run.spec['field']['type']}) moves by noisy steps and has no ladder; `stages` reads it")


def _beside(run: Run, changes: dict[str, Any]) -> TextAttention:
    """The same run with other steps: same start, same batches, same number of them."""
    dynamics = build(run.spec["dynamics"]).model_copy(update=changes)
    made = evolve(build(run.spec["field"]), run.at(0), dynamics, record=Every(n=INTERVAL), seed=run.seed, progress=False)
    if not made.done:
        raise StagescopeError(f"the run beside this one ended {made.status}: {made.reason}")
    return text_attention(made)
