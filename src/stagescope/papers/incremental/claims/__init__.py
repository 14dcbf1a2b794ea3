"""Incremental learning of sparse attention: the claims, in the order of the ledger."""

from stagescope.papers.incremental.claims import clock, escape, ladder
from stagescope.papers.incremental.stopping.claims import STOPPING_CLAIMS

HEAD_CLAIMS = (*ladder.CLAIMS, *escape.CLAIMS, *clock.CLAIMS)
CLAIMS = (*HEAD_CLAIMS, *STOPPING_CLAIMS)
