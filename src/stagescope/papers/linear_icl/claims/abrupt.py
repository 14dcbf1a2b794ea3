"""Merged heads: one drop, its time and its rate, and the closed form for white inputs."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.detect.events import turns
from stagescope.detect.plateaus import thinned
from stagescope.papers.linear_icl import forms, merged, nulls
from stagescope.papers.linear_icl.evidence import Evidence, all_drops, of_flow, small_start, undecided

SMALL = 1e-2
"""Largest rms of a start, in units of the final value of a head."""
DROP, RATE, LOGISTIC = 5e-3, 0.01, 1e-6
"""Relative tolerances of drop time and rate, and of m(t) in units of its end."""
LINEAR = 0.03
"""The rate is that of the growing part of the parameters up to this share of its end: M, its square, is then a thousandth."""
FRAMES = 2000
"""Frames of which a slope is taken at most: nearer ones differ by the solver's error."""
ALIGNED = 1e-6
"""How far from aligned and balanced a start may be for the closed form, relatively."""


def _small(evidence: Evidence) -> Regime:
    return of_flow(
        evidence,
        True,
        small_start(evidence, SMALL),
        all_drops(evidence),
        holds=f"merged heads from {evidence.size:.2g} of their final value",
    )


def _one_drop(evidence: Evidence) -> Comparison:
    """Maxima of -dloss/dt that rise by more than a hundredth of the largest above what lies between them."""
    chosen = thinned(evidence.curves.time, FRAMES)
    time, loss = evidence.curves.time[chosen], evidence.curves.loss[chosen]
    middle, speed = (time[1:] + time[:-1]) / 2, -np.diff(loss) / np.diff(time)
    least = 0.01 * float(speed.max())
    count = sum(turn.rising for turn in turns(middle, speed, least, least))
    return Comparison(1, count, "exact", count == 1, f"-dloss/dt has {count} maxim{'um' if count == 1 else 'a'}")


def _drop(evidence: Evidence) -> Comparison:
    predicted, measured = merged.drop_time(evidence.task, evidence.start), evidence.times[0]
    if measured is None or not np.isfinite(predicted):
        return undecided("no drop came, or none is predicted", tolerance=DROP)
    reason = f"the drop is at t={measured:.6g}, predicted {predicted:.6g} from the start"
    return agreement(predicted, measured, DROP * predicted, reason, unit="t")


def _rate(evidence: Evidence) -> Comparison:
    """The slope of ln c(t), the part of v and U along the growing direction, while it is alone and small."""
    task, rate = evidence.task, merged.growth_rate(evidence.task)
    along = np.einsum("thii,i->th", np.asarray(evidence.curves.params["U"]), task.spectrum**2) / rate
    grown = np.linalg.norm((np.asarray(evidence.curves.params["v"]) + along) / 2, axis=1)
    inside = np.flatnonzero(grown <= LINEAR * grown.max())
    if inside.size < 5 or grown[inside[-1]] < np.e * grown[0]:
        return undecided("the start is too large: nothing grows e-fold while it is small", rate, RATE * rate)
    slope = float(np.polyfit(evidence.curves.time[inside], np.log(grown[inside]), 1)[0])
    return agreement(rate, slope, RATE * rate, f"small heads grow at {slope:.5g}, predicted {rate:.5g}", unit="1/t")


def _white(evidence: Evidence) -> Regime:
    task = evidence.task
    if evidence.model.merged and np.ptp(task.spectrum) > 1e-12 * task.spectrum[0]:
        return Regime(False, "the eigenvalues differ", applies=False)
    whole = evidence.curves.whole[0]
    mean, size = float(np.trace(whole)) / task.dim, np.sqrt(np.sum(whole**2) / task.dim)
    held = evidence.curves.conserved[0]
    off = float(np.max(np.abs(whole - mean * np.eye(task.dim)))) / size if size else np.inf
    balance = float(np.max(np.abs(held))) / evidence.scale**2 if evidence.scale else np.inf
    good = mean > 0 and max(off, balance) <= ALIGNED
    holds = "white inputs, aligned and balanced start"
    return of_flow(evidence, True, (good, "the start is not aligned and balanced"), holds=holds)


def _logistic(evidence: Evidence) -> Comparison:
    first = float(np.trace(evidence.curves.whole[0])) / evidence.task.dim
    last = float(forms.final_map(evidence.task)[0])
    seen = np.einsum("tii->t", evidence.curves.whole) / evidence.task.dim
    off = float(np.max(np.abs(seen - merged.logistic(evidence.task, first, evidence.curves.time)))) / last
    return agreement(0.0, off, LOGISTIC, f"m(t) differs from the logistic curve by at most {off:.1e} of its end", unit="of m_inf")


CLAIMS = (
    claim(
        "LIN:merged",
        "Merged heads learn in one drop",
        _small,
        _one_drop,
        "start",
        "end",
        kind="pattern",
        null=nulls.PAUSED,
        rules=2,
    ),
    claim(
        "LIN:merged-drop",
        "The drop of merged heads comes at t_ref + ln(eps/c)/r",
        _small,
        _drop,
        "d1",
        kind="prediction",
        group="merged-clock",
        null=nulls.MERGED_STRETCHED,
        rules=2,
    ),
    claim(
        "LIN:merged-rate",
        "Merged heads leave the origin at the rate |Lambda^2|_F",
        _small,
        _rate,
        "start",
        "d1",
        kind="prediction",
        group="merged-clock",
        null=nulls.MERGED_STRETCHED,
        rules=2,
    ),
    claim(
        "LIN:logistic",
        "For white inputs M follows a logistic curve",
        _white,
        _logistic,
        "start",
        "end",
        kind="prediction",
        null=nulls.WHITE_STRETCHED,
    ),
)
