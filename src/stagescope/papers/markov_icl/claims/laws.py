"""Closed forms: the first gradient, the near-stationary point, and when a plateau is left."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.markov_icl import nulls
from stagescope.papers.markov_icl.evidence import Evidence
from stagescope.papers.markov_icl.forms import common_gain, first_gradient

EXACT = 1e-6  # relative: the forms are integrals by the quadrature of the loss itself
GROWTH = 0.2  # largest t_b over the law: b is at its class optimum for most of the plateau
MANY = {25: 0.12, 100: 0.05}  # lags from which on the law of the plateau holds to this share
TWO_STEP = 0.2  # the law leaves out what b and attention do to each other (page: 1.04 to 1.18)
AFTER = 3.5  # the law over 1/g_1, the time in which b grows once attention is at lag 1 (page, D 8, rho 10: 1.18 of the law)
SHOWN = 7  # lags whose scores are compared: later ones differ by less than the flow's tolerance


def _infinite(evidence: Evidence) -> Regime:
    applies = evidence.model in ("R", "S")
    if not applies:
        return Regime(False, "closed forms are for R and S", applies=False)
    if evidence.run.clock != "t":
        return Regime(False, "Adam moves all scores alike, whatever their gradients are")
    even = bool(np.ptp(evidence.start["v"]) < 1e-9)
    reason = "the match begins at zero and attention even over the lags"
    return Regime(evidence.from_zero and even, reason if evidence.from_zero and even else "the start is not even, or has a match")


def _first_speed(evidence: Evidence) -> float:
    """|F| at W = 0 by the closed forms."""
    gain, process = float(evidence.gains.mean()), evidence.law.process
    if evidence.model == "S":
        return abs(gain)
    if evidence.law.model.form == "parts":
        return float(np.hypot(common_gain(process), gain))
    return float(np.linalg.norm(first_gradient(process, evidence.lags)))


def _lag_gradient(evidence: Evidence) -> Comparison:
    """The recorded |F| at the start is that of the closed forms, and scores of odd lags rise above those of their neighbours."""
    predicted, measured = _first_speed(evidence), float(evidence.run.series["speed"][0])
    lag = evidence.events["lag"].time
    if lag is None:
        return Comparison(predicted, measured, EXACT * predicted, None, "attention on lag 1 has not doubled yet", unit="1/t")
    frame = int(np.searchsorted(evidence.curves.time, lag))
    moved = (evidence.curves.params["v"][frame] - evidence.curves.params["v"][0])[:SHOWN]
    odd = range(1, len(moved), 2)
    zigzag = all(moved[d] > moved[d - 1] and (d + 1 >= len(moved) or moved[d] > moved[d + 1]) for d in odd)
    leads = int(np.argmax(moved)) == 1
    close = abs(measured / predicted - 1) <= EXACT
    shape = f"scores moved by {', '.join(f'{each:.2g}' for each in moved)} when attention on lag 1 had doubled"
    reason = f"|F| is {measured:.8g} at the start, the closed form {predicted:.8g}; {shape}"
    return Comparison(predicted, measured, EXACT * predicted, close and zigzag and leads, reason, unit="1/t")


def _softmax(evidence: Evidence) -> Regime:
    if evidence.model != "S":
        return Regime(False, "the unigram point is exact for S alone", applies=False)
    return Regime(evidence.from_zero, "the run begins at the unigram point" if evidence.from_zero else "b does not begin at zero")


def _near_stationary(evidence: Evidence) -> Comparison:
    """D |F| at the unigram point is C, the sum of the chi-square information of the lags; any attention weights them."""
    start = np.exp(evidence.start["v"] - evidence.start["v"].max())
    predicted = float(evidence.lags * abs(start @ evidence.gains) / start.sum())
    measured = float(evidence.lags * evidence.run.series["speed"][0] / evidence.rate)
    reason = f"D |F| is {measured:.8g} at the unigram point with D = {evidence.lags}; the sum over the lags is {predicted:.8g}"
    return agreement(predicted, measured, EXACT * predicted, reason)


def on_plateau(evidence: Evidence) -> Regime:
    """The regime of the law of the plateau."""
    if evidence.model != "R" or evidence.doubly:
        return Regime(False, "the law is that of the unigram plateau of R", applies=False)
    if not evidence.flow or not evidence.from_zero:
        return Regime(False, "the run is no flow from a match of zero")
    if evidence.lags < min(MANY):
        return Regime(False, f"{evidence.lags} lags; at least {min(MANY)} are needed")
    law = evidence.plateau_time
    if not np.isfinite(law):
        return Regime(False, "lag 1 does not lead on the plateau")
    if (
        int(np.argmax(evidence.start["v"] + np.log(np.maximum(evidence.plateau.pull - evidence.plateau.pull.mean(), 1e-300))))
        != 1
    ):
        return Regime(False, "another lag has the lead at this start")
    grown = evidence.plateau.grown(GROWTH * law * evidence.rate) / evidence.rate
    return Regime(bool(grown <= GROWTH * law), f"b is at .9 of its plateau value at t = {grown:.4g}; the law is {law:.4g}")


def tolerance(lags: int) -> float:
    """Of the law of the plateau, relative."""
    return min(share for least, share in MANY.items() if lags >= least)


def _law(evidence: Evidence) -> Comparison:
    return _timed(evidence, evidence.plateau_time, tolerance(max(evidence.lags, min(MANY))))


def _timed(evidence: Evidence, predicted: float, share: float) -> Comparison:
    """t_2 beside a law."""
    when, half = evidence.time("t2")
    if when is None:
        late = float(evidence.curves.time[-1]) > (1 + share) * predicted
        words = f"t_2 was not reached by {evidence.curves.time[-1]:.4g}; the law is {predicted:.4g}"
        return Comparison(predicted, None, share * predicted, False if late else None, words, unit="t")
    reason = f"t_2 is {when:.5g}, the law {predicted:.5g}: {when / predicted:.3f} of it"
    return agreement(predicted, when, share * predicted, reason, measured_error=half, unit="t")


def _two_steps(evidence: Evidence) -> Regime:
    if not (evidence.model == "S" or (evidence.model == "R" and evidence.doubly)):
        return Regime(False, "the two-step law is for S, and for R under a doubly stochastic prior", applies=False)
    if not evidence.flow or not evidence.from_zero:
        return Regime(False, "the run is no flow from a match of zero")
    if evidence.model == "R" and evidence.law.model.form != "parts" and evidence.law.process.tokens > 2:
        return Regime(False, "b is not one of the numbers that move: entries of W do, and b at another rate")
    known = bool(np.isfinite(evidence.two_step))
    if not known:
        return Regime(False, "lag 1 does not lead at this start")
    later = float(evidence.two_step * evidence.rate * evidence.gains[1])
    words = f"rho = {evidence.ratio:g}, the law is for 1 to 10; it is {later:.2g} times the growth time of b at lag 1"
    return Regime(1 <= evidence.ratio <= 10 and later >= AFTER, f"{words}, at least {AFTER:g}")


def _two_step(evidence: Evidence) -> Comparison:
    return _timed(evidence, evidence.two_step, TWO_STEP)


CLAIMS = (
    claim(
        "MIC:lag-gradient",
        "The first gradient is that of the closed forms: odd lags lead, lag 1 most",
        _infinite,
        _lag_gradient,
        "start",
        "lag",
        kind="prediction",
        null=(nulls.OTHER_PRIOR, nulls.OTHER_PRIOR_S),
    ),
    claim(
        "MIC:near-stationary",
        "At the unigram point |F| = C/D",
        _softmax,
        _near_stationary,
        "start",
        kind="prediction",
        null=(nulls.OTHER_PRIOR_S,),
    ),
    claim(
        "MIC:plateau-law",
        "The unigram plateau is left at D / (rho b* gamma_1)",
        on_plateau,
        _law,
        "t1",
        "t2",
        kind="prediction",
        null=(nulls.STRETCHED,),
    ),
    claim(
        "MIC:two-step",
        "Where nothing holds the match up, t_2 is D sqrt(2/(rho C (g_1 - <g>)))",
        _two_steps,
        _two_step,
        "start",
        "t2",
        kind="prediction",
        null=(nulls.STRETCHED_TWO_STEP,),
    ),
)
