"""Incremental learning of sparse attention: the claims, in the order of the ledger."""

from stagescope.claims.ledger import Ledger
from stagescope.papers.incremental.claims import clock, escape, ladder
from stagescope.papers.incremental.evidence import Evidence
from stagescope.papers.incremental.stopping.claims import STOPPING_CLAIMS, StoppingEvidence
from stagescope.runs.run import Run

HEAD_CLAIMS = (*ladder.CLAIMS, *escape.CLAIMS, *clock.CLAIMS)
CLAIMS = (*HEAD_CLAIMS, *STOPPING_CLAIMS)


def ledger(run: Run, evidence: Evidence) -> Ledger:
    """All claims on a run; those about early stopping have evidence of their own."""
    heads, stops = Ledger.of(run, HEAD_CLAIMS, evidence), Ledger.of(run, STOPPING_CLAIMS, StoppingEvidence(run))
    return Ledger(run.status, run.clock, (*heads, *stops))
