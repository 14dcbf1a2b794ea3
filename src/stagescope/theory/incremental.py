"""Incremental learning of sparse attention: the claims, in the order of the ledger."""

from stagescope.runs.run import Run
from stagescope.theory import incremental_clock as clock
from stagescope.theory import incremental_escape as escape
from stagescope.theory import incremental_ladder as ladder
from stagescope.theory.incremental_evidence import Evidence
from stagescope.theory.incremental_stopping import STOPPING_CLAIMS, StoppingEvidence
from stagescope.theory.ledger import Ledger

HEAD_CLAIMS = (*ladder.CLAIMS, *escape.CLAIMS, *clock.CLAIMS)
CLAIMS = (*HEAD_CLAIMS, *STOPPING_CLAIMS)


def ledger(run: Run, evidence: Evidence) -> Ledger:
    """All claims on a run; those about early stopping have evidence of their own."""
    heads, stops = Ledger.of(run, HEAD_CLAIMS, evidence), Ledger.of(run, STOPPING_CLAIMS, StoppingEvidence(run))
    return Ledger(run.status, run.clock, (*heads, *stops))
