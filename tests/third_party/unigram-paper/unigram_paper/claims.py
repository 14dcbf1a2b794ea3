"""Sentences of the paper that a run can confirm or violate. They look at the reading of the run."""

import numpy as np

from stagescope.claims.claim import Claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from unigram_paper.nulls import SLOWER
from unigram_paper.observables import slowest_rate
from unigram_paper.reading import UnigramReading

ROUNDING = 1e-9  # of a sum over a few hundred steps at rtol 1e-10
LATE = 1e-3  # share of its start below which the excess loss is in its last exponential
RATE_TOLERANCE = 0.05  # relative; the next term of the excess is smaller by exp(-lambda t), about the root of LATE


def _any_gradient(reading: UnigramReading) -> Regime:
    return Regime(True, "any gradient flow")


def _sum(reading: UnigramReading) -> Comparison:
    total = reading.run.params["b"].sum(axis=1)
    drift = float(np.abs(total - total[0]).max())
    return Comparison(
        predicted=0.0,
        measured=drift,
        tolerance=ROUNDING,
        holds=drift <= ROUNDING,
        reason=f"the sum of b drifts by {drift:.1e}",
    )


def _is_late(reading: UnigramReading) -> Regime:
    share = float(reading.curves[-1] / reading.curves[0])
    return Regime(share < LATE, f"the excess loss ends at {share:.1e} of its start")


def _rate(reading: UnigramReading) -> Comparison:
    predicted = 2 * slowest_rate(reading.law.data)
    late = reading.run.time > 0.9 * reading.run.time[-1]
    measured = -float(np.polyfit(reading.run.time[late], np.log(reading.curves[late]), 1)[0])
    reason = f"the excess loss falls at {measured:.4f} in the last tenth of the run, predicted {predicted:.4f}"
    return agreement(predicted, measured, RATE_TOLERANCE * predicted, reason, unit="1/t")


CLAIMS = (
    Claim(tag="unigram:sum", statement="The sum of b is conserved", regime=_any_gradient, compare=_sum),
    Claim(
        tag="unigram:rate",
        statement="Late excess loss falls at twice the slowest rate",
        regime=_is_late,
        compare=_rate,
        shown=("settling", "end"),
        kind="prediction",
        null=SLOWER,
    ),
)
