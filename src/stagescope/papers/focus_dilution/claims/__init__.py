"""Focus and dilution: the list of all claims."""

from stagescope.papers.focus_dilution.claims import (
    asymmetry,
    cycle,
    eps_law,
    first_moves,
    lambda_c,
    predicted,
    saddles,
    second_order,
)

CLAIMS = (
    *saddles.CLAIMS,
    *second_order.CLAIMS,
    *first_moves.CLAIMS,
    *cycle.CLAIMS,
    *eps_law.CLAIMS,
    *asymmetry.CLAIMS,
    *lambda_c.CLAIMS,
    *predicted.CLAIMS,
)
