"""Focus and dilution: the list of all claims."""

from stagescope.papers.focus_dilution.claims import cycle, first_moves, laws, saddles, second_order

CLAIMS = (*saddles.CLAIMS, *second_order.CLAIMS, *first_moves.CLAIMS, *cycle.CLAIMS, *laws.CLAIMS)
