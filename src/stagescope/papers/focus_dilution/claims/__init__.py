"""Focus and dilution: the list of all claims."""

from stagescope.papers.focus_dilution.claims import cycle, laws, saddles

CLAIMS = (*saddles.CLAIMS, *cycle.CLAIMS, *laws.CLAIMS)
