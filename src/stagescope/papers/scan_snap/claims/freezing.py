"""What is left after the scan: attention almost frozen, on a fixed combination of several tokens."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.scan_snap import nulls
from stagescope.papers.scan_snap.claims.beside import long_modified
from stagescope.papers.scan_snap.evidence import ADAM, BATCHES, LIMITS, Evidence, regime_of, undecided
from stagescope.papers.scan_snap.observables import ClassAttention
from stagescope.papers.scan_snap.stages import LEVELS, Averages, find

THIRD = 1 / 3
"""The way ahead is extrapolated from the last factor of three in time; so is what the theory says of it."""


def promised(evidence: Evidence) -> tuple[float, float]:
    """The share of the way to ten times this time that theorems 1 and 4 put behind attention, and its error [SnS:snap].

    The way goes as B = 1/4 ln(1 + u) with u ~ x^2. The logit x is that of the run, and u = e^{-4 z_ct} - 1 at its end. So
    B ~ t^q, with q from the last factor of three in time, and the share is 10^-q. Two errors are computed: the theorems are
    used to leading order in 1/x, and the gradient's decoder adds to q.
    """
    curves, end = evidence.curves, evidence.end
    gaps = [evidence.at(evidence.logit_gaps, when) for when in (THIRD * end, end)]
    z = float(np.mean((curves.z[-1] - curves.z[0])[curves.supports.common]))
    if not min(gaps) > 0 or not z < 0:
        return 0.0, 0.0
    u = np.expm1(min(-4 * z, 700.0))  # beyond it the exponential overflows
    q = np.log(np.log1p(u) / np.log1p(u * (gaps[0] / gaps[1]) ** 2)) / -np.log(THIRD)
    q = max(float(q), 0.0)
    steeper = q * (1 + 2 / gaps[1]) + (0.0 if evidence.modified else _gradient_adds(evidence))
    return 10.0**-q, 10.0**-q - 10.0**-steeper


def _gradient_adds(evidence: Evidence) -> float:
    """d ln w / d ln t over the last factor of three in time, where it is positive [SnS:snap].

    Under the gradient a row of Y is sum_n f_ln A_n with A_n = int (e_n - alpha_n) dt. Then the pull on a distinct token,
    g_l - f_l f.g, is f_l f_c^2 times sum over m != n of -A_m . (e_n - alpha_n): the probability that class n gives to the
    targets of other classes. It is w times all that it gives wrongly, and w grows while other outputs are unlearned.
    """
    before, now = (
        float(evidence.curves.readout.on_targets[evidence.frame(when)]) for when in (THIRD * evidence.end, evidence.end)
    )
    return max(float(np.log(now / before)) / -np.log(THIRD), 0.0) if before > 0 else 0.0


def _snap_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if evidence.commons == 0:
        return Regime(False, "there are no common tokens", applies=False)
    (share, error), level = promised(evidence), LEVELS.snap_behind
    said = f"by theorems 1 and 4, attention has gone {share:.0%} (error {error:.0%}) of its way to ten times this time"
    return regime_of((share - error >= level, f"{said}; {level:.0%} are not certain"), holds=said)


def _behind(curves: ClassAttention) -> float:
    return float(curves.behind[-1])


def _snap(evidence: Evidence) -> Comparison:
    """The share of the way that attention has gone by the end; it must have moved, and passed the peak of its speed."""
    level, unit = LEVELS.snap_behind, "of the way to ten times this time"
    if not evidence.material:
        return undecided(f"only {evidence.curves.moved[-1]:.2g} of all attention has moved", f">= {level:g}", "bound")
    share, error = (float(each) for each in evidence.spread(_behind))
    holds = True if share - error >= level else False if share + error < level else None
    event = find(Averages.of(evidence.curves))["snap"]
    if holds and event.time is None:
        return undecided("attention was not frozen without interruption", f">= {level:g}", "bound")
    clock = evidence.curves.clock
    since = "" if event.time is None else f"; more than {level:.0%} since {clock}={event.time:.4g}"
    reason = f"attention has gone {share:.1%} of the way that it will have gone by {clock}={10 * evidence.end:.4g}{since}"
    return Comparison(f">= {level:g}", share, "bound", holds, reason, promised(evidence)[1], error, unit)


def _settled_regime(evidence: Evidence) -> Regime:
    """A decade of time after attention has slowed down, and after it has moved as much as may still move."""
    if evidence.is_adam:
        return ADAM
    early = evidence.end / 10
    moved = evidence.at(evidence.curves.moved, early)
    slow = find(Averages.of(evidence.curves))["slow"]
    return regime_of(
        (slow.time is not None and slow.time <= early, "the run does not last a decade of time after attention has slowed down"),
        (moved >= LIMITS.decade, f"only {moved:.2g} of all attention had moved a decade before the end"),
        holds=f"{moved:.2g} of all attention had moved a decade of time before the end",
    )


def _shares(curves: ClassAttention, frame: int) -> np.ndarray:
    """Attention of a frame, renormalised on the distinct tokens of each class (entries,)."""
    own = curves.c[frame] * ~curves.supports.common
    return own / curves.supports.sums(own)[curves.supports.of]


def _last_decade(curves: ClassAttention) -> float:
    """Share of the attention on distinct tokens that changed places in the last decade of time, mean over classes."""
    early = int(np.argmin(np.abs(curves.time - curves.time[-1] / 10)))
    return float(curves.supports.sums(np.abs(_shares(curves, -1) - _shares(curves, early))) @ curves.prior) / 2


def _fixed(evidence: Evidence) -> Comparison:
    measured, error = (float(each) for each in evidence.spread(_last_decade))
    reason = f"in the last decade of time {measured:.2%} of the attention on distinct tokens changed places"
    return agreement(0.0, measured, LIMITS.decade, reason, measured_error=error, unit="of the attention on distinct tokens")


def _several_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if not np.any(evidence.curves.distinct.sum(axis=1) > 1):
        return Regime(False, "every class has one distinct token only", applies=False)
    slow = find(Averages.of(evidence.curves))["slow"]
    return regime_of(
        (slow.time is not None, "attention has not slowed down yet, so its end is not known"),
        (evidence.material, f"only {evidence.curves.moved[-1]:.2g} of all attention has moved"),
        holds="attention has moved and slowed down; classes have several distinct tokens",
    )


def _lost(curves: ClassAttention) -> float:
    """Share of the entropy on distinct tokens that is lost since the start: 0 at the start, 1 if one token takes all."""
    entropy = curves.mean(curves.entropy)
    return float(1 - entropy[-1] / entropy[0])


def _several(evidence: Evidence) -> Comparison:
    """The loss of entropy, and what another decade of time like the last one would add as its error."""
    curves, level = evidence.curves, LIMITS.half
    measured, noise = (float(each) for each in evidence.spread(_lost))
    entropy = curves.mean(curves.entropy)
    last = abs(evidence.at(entropy, evidence.end / 10) - entropy[-1]) / entropy[0]
    error = float(np.hypot(noise, last))
    left = float(np.exp(entropy[-1]))
    holds = True if measured + error < level else False if measured - error > level else None
    reason = f"attention ends on {left:.2f} distinct tokens of a class, of {np.exp(entropy[0]):.2f} at the start (exp of entropy)"
    return Comparison(f"< {level:g}", measured, "bound", holds, reason, None, error, "of the entropy at the start")


CLAIMS = (
    claim(
        "SnS:snap",
        "Attention snaps: it has gone three quarters of the way that it goes in ten times the time",
        _snap_regime,
        _snap,
        "peak",
        "end",
        kind="pattern",
        group="motion at the end",
        null=(nulls.THAWED, nulls.FROZEN, nulls.CUT),
        rules=3,
        cost=BATCHES,
        elsewhere=long_modified,
    ),
    claim(
        "SnS:fixed",
        "The combination of distinct tokens stays almost fixed",
        _settled_regime,
        _fixed,
        "slow",
        "end",
        kind="pattern",
        group="motion at the end",
        null=(nulls.THAWED, nulls.FROZEN, nulls.CUT),
        cost=BATCHES,
        elsewhere=long_modified,
    ),
    claim(
        "SnS:several",
        "Attention ends on several distinct tokens, not on one winner",
        _several_regime,
        _several,
        "slow",
        "end",
        kind="pattern",
        null=nulls.SHARPENED,
        cost=BATCHES,
        elsewhere=long_modified,
    ),
)
