"""Incremental learning of sparse attention: the claims, in the order of the ledger."""

from stagescope.papers.incremental.claims import clock, escape, heads, ladder, noises
from stagescope.papers.incremental.stopping.claims import STOPPING_CLAIMS

HEAD_CLAIMS = (*ladder.CLAIMS, *heads.CLAIMS, *escape.CLAIMS, *noises.CLAIMS, *clock.CLAIMS)
CLAIMS = (*HEAD_CLAIMS, *STOPPING_CLAIMS)
