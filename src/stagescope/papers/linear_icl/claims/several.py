"""Claims over several runs: the cascade over seeds, and how the first drop depends on the scale of the start."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.claims.over_runs import OverRuns
from stagescope.papers.linear_icl import forms, merged, nulls
from stagescope.papers.linear_icl.evidence import LIMITS, Evidence, all_drops, of_flow, separated, small_start, undecided

RUNS = 11
"""Flows from other seeds; with this run twelve."""
LEAST = 10
"""Later drops in regime that decide a share of nine tenths: one wrong is a tenth."""
SURE = 1.64
"""A share of nine tenths is missed where it is so many standard errors below: one run in twenty by chance."""
FACTORS = (1.0, 10**-0.5, 0.1)
"""Starts of the scale law, this run's first."""
LAW = 0.01
"""Relative tolerance of the scale law."""


def _cascades(evidence: Evidence) -> Regime:
    found = of_flow(
        evidence,
        False,
        small_start(evidence, LIMITS.small),
        separated(evidence),
        all_drops(evidence),
        (evidence.seeded is not None, "companion runs of companion runs are not made"),
        holds=f"separate heads from {evidence.size:.2g} of their final value, purity {evidence.purity:.2g}; "
        "drops after close heads are left out",
    )
    if found.applies and (evidence.model.rank != 1 or evidence.model.reach < 2):
        return Regime(False, "the cascade is of two or more heads of rank one", applies=False)
    return found


def _judged(evidence: Evidence) -> list[tuple[float, float, bool]]:
    """Predicted and measured time of the later drops of a run, and whether the right head makes it.

    A drop counts where no two heads were close to each other at this or an earlier one.
    """
    found = []
    for m, drop in enumerate(evidence.predicted):
        if drop.ratio < LIMITS.apart or m >= evidence.reached:
            break
        measured = evidence.times[m]
        assert measured is not None
        found.append((drop.time, measured, evidence.owners[drop.direction] == drop.head))
    return found[1:]


def _cascade(evidence: Evidence) -> Comparison:
    """The share of later drops that come within 15 % and by the right head, over this run and others; this run is one of them.

    So its own first drop, which is predicted to 1 %, must not be off by 15 % either.
    """
    if evidence.seeded is None or not evidence.predicted or evidence.times[0] is None:
        return undecided("no companion runs, or no first drop", LIMITS.right)
    own = abs(evidence.times[0] / evidence.predicted[0].time - 1)
    if own > LIMITS.later:
        reason = f"the first drop of this run is off by {own:.1%}, so it is none of the runs that the cascade is about"
        return Comparison(LIMITS.right, 0.0, "at least", False, reason, unit="of later drops")
    others = evidence.seeded(tuple(range(RUNS)))
    rows = [row for each in (evidence, *others) for row in _judged(each)]
    if len(rows) < LEAST:
        return undecided(f"{len(rows)} later drops of {1 + len(others)} runs are in regime, fewer than {LEAST}", LIMITS.right)
    right = [head and abs(seen / said - 1) <= LIMITS.later for said, seen, head in rows]
    share, error = float(np.mean(right)), [abs(seen / said - 1) for said, seen, _ in rows]
    reason = (
        f"{sum(right)} of {len(rows)} later drops of {1 + len(others)} runs come within {LIMITS.later:.0%} by the right head;"
    )
    reason += f" median error {np.median(error):.1%}, largest {max(error):.1%}; the first drop of this run is off by {own:.1%}"
    said, seen = (tuple(row[part] for row in rows) for part in (0, 1))
    over = OverRuns(said, seen, said, "predicted t of later drops", "measured t", log_x=True, log_y=True)
    doubt = SURE * float(np.sqrt(LIMITS.right * (1 - LIMITS.right) / len(rows)))
    holds = True if share >= LIMITS.right else False if share + doubt < LIMITS.right else None
    return Comparison(LIMITS.right, share, "at least", holds, reason, unit="of later drops", over_runs=over)


def _scales(evidence: Evidence) -> Regime:
    model = evidence.model
    made = evidence.scaled is not None, "companion runs of companion runs are not made"
    limit = small_start(evidence, LIMITS.course if model.merged else LIMITS.small)
    came = evidence.reached > 0, "the run ends before its first drop"
    return of_flow(
        evidence,
        model.merged,
        limit,
        came,
        made,
        holds=f"{evidence.size:.2g} of the final value, and starts up to 10 times smaller",
    )


def _scale_law(evidence: Evidence) -> Comparison:
    if evidence.scaled is None or evidence.times[0] is None:
        return undecided("no companion runs, or no first drop", tolerance=LAW)
    runs = [evidence, *(evidence.scaled(factor) for factor in FACTORS[1:])]
    times = [run.times[0] for run in runs]
    if None in times:
        return undecided("a companion run ended before its first drop", tolerance=LAW)
    seen, scales = np.array(times, dtype=float), evidence.scale * np.array(FACTORS)
    return (_logarithmic if evidence.model.merged else _inverse)(evidence, scales, seen)


def _inverse(evidence: Evidence, scales: np.ndarray, seen: np.ndarray) -> Comparison:
    """(d1 - delay) s is one number: an escape of order two."""
    delay = forms.delay(evidence.task, 0)
    products = (seen - delay) * scales
    off = float(np.max(np.abs(products / products[-1] - 1)))
    said = products[-1] / scales + delay
    over = OverRuns(tuple(scales), tuple(seen), tuple(said), "rms of the start", "d1 (t)", log_x=True, log_y=True)
    shown = ", ".join(f"{value:.5g}" for value in products)
    reason = f"(d1 - delay) x s is {shown}: it differs by {off:.2%}"
    return agreement(0.0, off, LAW, reason, unit="of the product", over_runs=over)


def _logarithmic(evidence: Evidence, scales: np.ndarray, seen: np.ndarray) -> Comparison:
    """d1 grows by ln(1/s)/r: an exponential escape."""
    rate = merged.growth_rate(evidence.task)
    steps = (seen[1:] - seen[0]) / (np.log(scales[0] / scales[1:]) / rate)
    worst = float(steps[int(np.argmax(np.abs(steps - 1)))])
    said = seen[-1] - np.log(scales / scales[-1]) / rate
    over = OverRuns(tuple(scales), tuple(seen), tuple(said), "rms of the start", "d1 (t)", log_x=True)
    reason = f"d1 grows by {', '.join(f'{value:.5g}' for value in steps)} of ln(1/s)/r"
    return agreement(1.0, worst, LAW, reason, unit="of ln(1/s)/r", over_runs=over)


CLAIMS = (
    claim(
        "LIN:cascade",
        "Later drops come at the times and by the heads of the cascade, in nine of ten",
        _cascades,
        _cascade,
        "d1",
        "d*",
        kind="prediction",
        null=nulls.STRETCHED,
        cost=f"{RUNS} flows from other seeds, each about as long as this one",
        rules=2,
    ),
    claim(
        "LIN:scale-law",
        "The first drop comes as 1/s; of merged heads as ln(1/s)",
        _scales,
        _scale_law,
        "d1",
        kind="prediction",
        null=(nulls.STRETCHED, nulls.MERGED_STRETCHED),
        cost="2 flows from smaller starts, up to their first drop",
        rules=2,
    ),
)
