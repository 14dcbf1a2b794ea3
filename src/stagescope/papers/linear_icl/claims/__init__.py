"""Linear attention in context: the list of all claims."""

from stagescope.papers.linear_icl.claims import abrupt, drops, plateaus, rank, several

CLAIMS = (*plateaus.CLAIMS, *abrupt.CLAIMS, *drops.CLAIMS, *several.CLAIMS, *rank.CLAIMS)
